import assert from "node:assert/strict";
import { describe, it } from "vitest";
import { buildSecret } from "../envoy/tls/index.ts";
import { SecretSchema } from "../gen/envoy/extensions/transport_sockets/tls/v3/secret_pb.js";
import { encoded } from "../wire/encode.ts";
import { messageRegistry } from "../wire/json.ts";
import { SECRET_TYPE } from "../wire/type-urls.ts";
import type { StreamDump } from "../xds/state.ts";
import type { ClustersDump } from "./api-types.ts";
import { configDump } from "./config-dump.ts";
import { proxyDump } from "./proxy-dump.ts";
import { clusterOf, dumpOf, setOf, testView, typeStateOf } from "./stream-fixture.ts";

const options = async () => ({ registry: await messageRegistry(), why: undefined, pause: () => undefined });

const onOneStream = (dump: StreamDump) => proxyDump([{ dump, types: [] }]);

describe("configDump", () => {
  it("shows acknowledged resources as active, offered ones as warming, and refused ones with the reason", async () => {
    const kept = clusterOf("kept");
    const old = clusterOf("changed", "1");
    const next = clusterOf("changed", "2");
    const refused = clusterOf("refused", "2");
    const held = [kept, old, clusterOf("refused", "1")];
    const state = typeStateOf({ rejected: [{ name: "refused", version: refused.version, error: "no good", fallback: undefined }] });
    const proxy = proxyDump([{ dump: dumpOf(testView(), held, setOf(kept, next, refused)), types: [state] }]);
    const dump = await configDump(proxy, await options());
    const [clusters] = dump.configs as readonly [ClustersDump];
    const summary = (list: ClustersDump["dynamicActiveClusters"]) =>
      list?.map(({ cluster, clientStatus, errorState }) => [(cluster as { name: string }).name, clientStatus, errorState?.details]);
    assert.deepEqual(summary(clusters.dynamicActiveClusters), [
      ["changed", "REQUESTED", undefined],
      ["kept", "ACKED", undefined],
      ["refused", "NACKED", "no good"],
    ]);
    assert.deepEqual(summary(clusters.dynamicWarmingClusters), [
      ["changed", "REQUESTED", undefined],
      ["refused", "NACKED", "no good"],
    ]);
    assert.equal(clusters.dynamicActiveClusters?.[1]?.versionInfo, kept.version);
  });

  it("has the six parts of Envoy's dump in its order, empty lists left out", async () => {
    const dump = await configDump(onOneStream({ ...dumpOf(testView(), [], setOf()), types: [] }), await options());
    const types = [
      "ClustersConfigDump",
      "ListenersConfigDump",
      "RoutesConfigDump",
      "EndpointsConfigDump",
      "SecretsConfigDump",
      "EcdsConfigDump",
    ];
    assert.deepEqual(
      dump.configs,
      types.map((type) => ({ "@type": `type.googleapis.com/envoy.admin.v3.${type}` })),
    );
  });

  it("shows certificates without their keys, in secrets and wherever users put them", async () => {
    const content = { is: "certificate", chain: Buffer.from("the chain"), key: Buffer.from("the key") } as const;
    const secret = encoded({ typeUrl: SECRET_TYPE, name: "kubernetes://a" }, SecretSchema, buildSecret("kubernetes://a", content));
    const stream = dumpOf(testView(), [secret], setOf(secret));
    const [type] = stream.types;
    assert.ok(type !== undefined);
    const dump = await configDump(onOneStream({ ...stream, types: [{ ...type, typeUrl: SECRET_TYPE }] }), await options());
    const text = JSON.stringify(dump);
    const inBase64 = (word: string): string => Buffer.from(word).toString("base64");
    assert.ok(text.includes(inBase64("the chain")) && text.includes(inBase64("[redacted]")));
    assert.ok(!text.includes(inBase64("the key")));
  });

  it("adds the objects a resource was made from where asked, and gives way when told to", async () => {
    let pauses = 0;
    const why = (_type: string, name: string) => [{ object: `ServiceEntry/shop/${name}`, at: "a.yaml:1" }];
    const pause = async () => void pauses++;
    const dump = await configDump(onOneStream(dumpOf(testView(), [clusterOf("a")], setOf(clusterOf("a")))), {
      ...(await options()),
      why,
      pause,
    });
    assert.deepEqual((dump.configs[0] as ClustersDump).dynamicActiveClusters?.[0]?.why, [
      { object: "ServiceEntry/shop/a", at: "a.yaml:1" },
    ]);
    assert.equal(pauses, 1);
  });
});
