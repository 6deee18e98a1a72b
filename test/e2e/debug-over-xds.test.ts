import { create, fromBinary, toBinary } from "@bufbuild/protobuf";
import { BinaryReader } from "@bufbuild/protobuf/wire";
import { Metadata } from "@grpc/grpc-js";
import { describe, expect, it, onTestFinished } from "vitest";
import { NodeSchema } from "../../src/gen/envoy/config/core/v3/base_pb.js";
import {
  DeltaDiscoveryRequestSchema,
  DeltaDiscoveryResponseSchema,
  DiscoveryRequestSchema,
  DiscoveryResponseSchema,
} from "../../src/gen/envoy/service/discovery/v3/discovery_pb.js";
import { eachField } from "../../src/wire/field-reader.ts";
import { openAdsClient } from "../../src/wire/grpc-client.ts";
import { CLUSTER_TYPE } from "../../src/wire/type-urls.ts";
import { clientCredentials } from "../support/identity.ts";
import { type Istiod, startIstiod } from "../support/istiod.ts";
import { createIssuer } from "../support/tokens.ts";
import { eventually } from "../support/wait.ts";
import { subscribe } from "../support/xds-subscriber.ts";

const issuer = createIssuer("https://id.test");
const MESH = `tokenIssuers:
- {issuer: ${issuer.name}, jwks: '${issuer.jwks}', audiences: [istio-ca], identity: {namespace: ns, serviceAccount: sa}}
`;
const tokenOf = (ns: string): string => issuer.token({ aud: "istio-ca", ns, sa: "default" });

interface Asked {
  readonly namespace?: string;
  readonly typeUrl: string;
  readonly names?: readonly string[];
  readonly variant?: "delta" | "sotw";
}

interface Told {
  readonly types: readonly string[];
  readonly values: readonly Uint8Array[];
  readonly controlPlane: string;
}

/** Asks as Istio's tools do: as a node that is no workload of the caller's. Gives the answer, or why there is none. */
async function ask(istiod: Istiod, { namespace = "istio-system", typeUrl, names = [], variant = "sotw" }: Asked): Promise<Told | string> {
  const { promise, resolve } = Promise.withResolvers<Told | string>();
  const metadata = new Metadata();
  metadata.set("authorization", `Bearer ${tokenOf(namespace)}`);
  const client = openAdsClient({
    address: `localhost:${istiod.securePort}`,
    variant,
    credentials: await clientCredentials(istiod),
    metadata,
    message(bytes) {
      const { resources, controlPlane } =
        variant === "delta" ? fromBinary(DeltaDiscoveryResponseSchema, bytes) : fromBinary(DiscoveryResponseSchema, bytes);
      const all = resources.flatMap((one) => (one.$typeName === "google.protobuf.Any" ? [one] : (one.resource ?? [])));
      resolve({
        types: all.map((one) => one.typeUrl),
        values: all.map((one) => one.value),
        controlPlane: controlPlane?.identifier ?? "",
      });
    },
    ended: (error) => resolve(error?.message ?? "ended"),
  });
  onTestFinished(() => client.close());
  const node = { id: "sidecar~192.0.2.1~test-1.default~default.svc.cluster.local" };
  client.send(
    variant === "delta"
      ? toBinary(DeltaDiscoveryRequestSchema, create(DeltaDiscoveryRequestSchema, { node, typeUrl, resourceNamesSubscribe: [...names] }))
      : toBinary(
          DiscoveryRequestSchema,
          create(DiscoveryRequestSchema, { node, typeUrl, resourceNames: [...names], responseNonce: "theirs" }),
        ),
  );
  return promise;
}

/** Who a ClientConfig is about, and the types it tells of with their status. */
function clientOf(value: Uint8Array): { readonly id: string; readonly metadata: unknown; readonly types: readonly string[] } {
  let node = create(NodeSchema);
  const types: string[] = [];
  eachField(value, (field, reader) => {
    if (field === 1) node = fromBinary(NodeSchema, reader.bytes());
    else if (field === 3) types.push(typeOf(reader.bytes()));
    else return false;
    return true;
  });
  return { id: node.id, metadata: node.metadata, types };
}

function typeOf(value: Uint8Array): string {
  const reader = new BinaryReader(value);
  let [type, status] = ["", 0];
  while (reader.pos < reader.len) {
    const [field, wireType] = reader.tag();
    if (field === 1) type = reader.string();
    else if (field === 6) status = reader.uint32();
    else reader.skip(wireType, field);
  }
  return `${type} ${status}`;
}

const SYNCED = 1;

describe("questions of Istio's tools over xDS", () => {
  it("are answered for who has proved to be of the control plane's namespace, and of others as far as it concerns them", async () => {
    const istiod = await startIstiod({ files: { "mesh.yaml": MESH } });
    for (const namespace of ["shop", "mall"]) {
      const node = { id: `sidecar~127.0.0.1~web.${namespace}~${namespace}.svc.cluster.local`, metadata: { NAMESPACE: namespace } };
      const answers = subscribe({ port: istiod.grpcPort, variant: "delta", node, typeUrl: CLUSTER_TYPE });
      await eventually("the proxy is served", () => answers.length > 0);
    }
    const syncz = { typeUrl: "istio.io/debug/syncz" };
    for (const variant of ["sotw", "delta"] as const) {
      const told = await eventually("both are in step", async () => {
        const answer = await ask(istiod, { ...syncz, variant });
        if (typeof answer === "string") throw new Error(answer);
        const all = answer.values.map(clientOf);
        if (!all.every(({ types }) => types.every((type) => type.endsWith(` ${SYNCED}`)))) throw new Error(JSON.stringify(all));
        return answer;
      });
      expect(new Set(told.types)).toEqual(new Set(["type.googleapis.com/envoy.service.status.v3.ClientConfig"]));
      expect(told.values.map(clientOf)).toMatchObject([
        { id: "web.mall", metadata: { NAMESPACE: "mall" }, types: [`${CLUSTER_TYPE} ${SYNCED}`] },
        { id: "web.shop", metadata: { NAMESPACE: "shop" } },
      ]);
      expect(JSON.parse(told.controlPlane)).toMatchObject({ Component: "istiod", ID: "istiod" });
    }
    const own = await ask(istiod, { ...syncz, namespace: "shop" });
    expect(typeof own === "string" ? own : own.values.map((value) => clientOf(value).id)).toEqual(["web.shop"]);

    const page = await ask(istiod, { typeUrl: "istio.io/debug", names: ["config_dump?proxyID=web.shop"] });
    expect(typeof page === "string" ? page : JSON.parse(Buffer.from(page.values[0] ?? []).toString())).toHaveProperty("configs");
    expect(await ask(istiod, { typeUrl: "istio.io/debug", names: ["configz"], namespace: "shop" })).toContain("PERMISSION_DENIED");
    expect(await ask(istiod, { typeUrl: "istio.io/debug", names: ["nothing"] })).toContain("there is no page");
    expect(await ask(istiod, { typeUrl: "istio.io/debug" })).toContain("name one debug page");
    expect(await ask(istiod, { typeUrl: "istio.io/else" })).toContain("UNIMPLEMENTED");
  });
});
