import assert from "node:assert/strict";
import { create, fromBinary } from "@bufbuild/protobuf";
import { anyUnpack } from "@bufbuild/protobuf/wkt";
import { describe, it } from "vitest";
import { buildSecret } from "../envoy/tls/index.ts";
import { SecretsConfigDumpSchema } from "../gen/envoy/admin/v3/config_dump_pb.js";
import {
  ClustersConfigDumpSchema,
  ListenersConfigDumpSchema,
  RoutesConfigDumpSchema,
} from "../gen/envoy/admin/v3/config_dump_shared_pb.js";
import { ClusterSchema } from "../gen/envoy/config/cluster/v3/cluster_pb.js";
import { ListenerSchema } from "../gen/envoy/config/listener/v3/listener_pb.js";
import { RouteConfigurationSchema } from "../gen/envoy/config/route/v3/route_pb.js";
import { SecretSchema } from "../gen/envoy/extensions/transport_sockets/tls/v3/secret_pb.js";
import { encoded } from "../wire/encode.ts";
import type { Encoded } from "../wire/encoded.ts";
import { messageRegistry } from "../wire/json.ts";
import { LISTENER_TYPE, ROUTE_TYPE, SECRET_TYPE } from "../wire/type-urls.ts";
import { configDump } from "./config-dump.ts";
import { encodedDump } from "./encoded-dump.ts";
import { proxyDump } from "./proxy-dump.ts";
import { clusterOf, dumpOf, setOf, testView } from "./stream-fixture.ts";

const KEY = "-----BEGIN PRIVATE KEY-----hunter2";

async function sectionsOf(
  types: readonly { readonly typeUrl: string; readonly held: readonly Encoded[]; readonly offered: readonly Encoded[] }[],
) {
  const registry = await messageRegistry();
  const pause = () => undefined;
  const wanted = { wildcard: true, names: { id: 0, names: new Set<string>() } };
  const stream = {
    ...dumpOf(testView(), [], setOf()),
    types: types.map(({ typeUrl, held, offered }) => ({ typeUrl, wanted, held, offered: setOf(...offered) })),
  };
  const sections = await encodedDump(await configDump(proxyDump([{ dump: stream, types: [] }]), { registry, why: undefined, pause }), {
    registry,
    pause,
  });
  return new Map(sections.map(({ typeUrl, body }) => [typeUrl.slice(typeUrl.lastIndexOf(".") + 1), body]));
}

describe("encodedDump", () => {
  it("has what the proxy acknowledged, and what it was offered beyond that, in the fields of Envoy's messages", async () => {
    const listener = encoded({ typeUrl: LISTENER_TYPE, name: "l" }, ListenerSchema, create(ListenerSchema, { name: "l" }));
    const table = encoded({ typeUrl: ROUTE_TYPE, name: "80" }, RouteConfigurationSchema, create(RouteConfigurationSchema, { name: "80" }));
    const [old, next] = [clusterOf("changed", "1"), clusterOf("changed", "2")];
    const sections = await sectionsOf([
      { typeUrl: old.typeUrl, held: [old], offered: [next] },
      { typeUrl: LISTENER_TYPE, held: [listener], offered: [listener] },
      { typeUrl: ROUTE_TYPE, held: [table], offered: [table] },
    ]);
    assert.deepEqual(
      [...sections.keys()],
      ["ClustersConfigDump", "ListenersConfigDump", "RoutesConfigDump", "SecretsConfigDump", "EcdsConfigDump"],
    );
    const bytesOf = (name: string): Uint8Array => sections.get(name) ?? new Uint8Array();
    const { dynamicActiveClusters, dynamicWarmingClusters } = fromBinary(ClustersConfigDumpSchema, bytesOf("ClustersConfigDump"));
    assert.deepEqual(
      [dynamicActiveClusters, dynamicWarmingClusters].map((list) =>
        list.map(({ cluster, versionInfo }) => [cluster && anyUnpack(cluster, ClusterSchema)?.altStatName, versionInfo]),
      ),
      [[["1", old.version]], [["2", next.version]]],
    );
    const [dumped] = fromBinary(ListenersConfigDumpSchema, bytesOf("ListenersConfigDump")).dynamicListeners;
    assert.deepEqual([dumped?.name, dumped?.activeState?.versionInfo, dumped?.warmingState], ["l", listener.version, undefined]);
    assert.equal(dumped?.activeState?.listener && anyUnpack(dumped.activeState.listener, ListenerSchema)?.name, "l");
    const [route] = fromBinary(RoutesConfigDumpSchema, bytesOf("RoutesConfigDump")).dynamicRouteConfigs;
    assert.equal(route?.routeConfig && anyUnpack(route.routeConfig, RouteConfigurationSchema)?.name, "80");
  });

  it("has no secrets in it", async () => {
    const secret = encoded(
      { typeUrl: SECRET_TYPE, name: "key" },
      SecretSchema,
      buildSecret("key", { is: "certificate", chain: Buffer.from("chain"), key: Buffer.from(KEY) }),
    );
    const body =
      (await sectionsOf([{ typeUrl: SECRET_TYPE, held: [secret], offered: [secret] }])).get("SecretsConfigDump") ?? new Uint8Array();
    const [dumped] = fromBinary(SecretsConfigDumpSchema, body).dynamicActiveSecrets;
    assert.equal(dumped?.name, "key");
    assert.equal(dumped?.secret && anyUnpack(dumped.secret, SecretSchema)?.name, "key");
    const text = Buffer.from(body).toString("latin1");
    assert.ok(!text.includes("hunter2"));
    assert.ok(text.includes("[redacted]"));
  });
});
