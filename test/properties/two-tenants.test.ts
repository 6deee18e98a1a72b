import { create, type JsonObject } from "@bufbuild/protobuf";
import fc from "fast-check";
import { expect, it } from "vitest";
import { NodeSchema } from "../../src/gen/envoy/config/core/v3/base_pb.js";
import { holds } from "../support/holds.ts";
import { type MeshParts, meshOf, type TestMesh } from "../support/mesh-from.ts";
import { type Doc, keyOf, textOf } from "./doc.ts";
import { randomDocs, type Writer } from "./random-mesh.ts";

const HOSTS = ["h0.test", "h1.test", "*.wild.test", "private.test"];

/** The tenant whose proxies are looked at. It may name the other's private host and delegate, but must get nothing of them. */
const OWN: Writer = {
  ...{ namespace: "a", mark: "own", net: "10.1", created: ["2026-01-02"], exportTo: [undefined, ["."], ["b"]] },
  ...{ hosts: HOSTS, declares: HOSTS, delegates: ["a/own-delegate-0", "b/secret-delegate-0"] },
};

/** The other tenant in public. */
const OTHER: Writer = {
  ...{ namespace: "b", mark: "open", net: "10.2", created: ["2026-01-02"], exportTo: [undefined, ["*"], ["a"]] },
  ...{ hosts: HOSTS, declares: ["h0.test", "open.test"], delegates: ["b/open-delegate-0"] },
};

/** The other tenant in private, before and after it was in public: everything carries the word "secret" or an address that nothing else has. */
const SECRET: Writer = {
  ...{ namespace: "b", mark: "secret", net: "10.66", created: ["2026-01-01", "2026-01-03"], exportTo: [["."]] },
  ...{
    hosts: [...HOSTS, "open.test"],
    declares: ["h0.test", "h1.test", "*.wild.test", "open.test", "private.test", "secret.test"],
    delegates: ["b/secret-delegate-0"],
  },
};
const TRACES = ["secret", "10.66."];

const EDGE = `
apiVersion: networking.istio.io/v1
kind: Gateway
metadata: {name: edge, namespace: a}
spec: {selector: {app: edge}, servers: [{port: {number: 80, name: http, protocol: HTTP}, hosts: ["*"]}, {port: {number: 5000, name: tcp, protocol: TCP}, hosts: ["*"]}]}
`;

const node = (name: string, type: string, metadata: JsonObject): MeshParts["nodes"][number] => ({
  name,
  node: create(NodeSchema, {
    id: `${type}~10.1.9.9~${name}.a~a.svc.cluster.local`,
    metadata: { NAMESPACE: "a", ...metadata },
  }),
});

/** A workload without a proxy that dials every host there may be, and listens. */
const DIALLED = [...new Set([OWN, OTHER, SECRET].flatMap(({ hosts, declares }) => [...hosts, ...declares]))];
const CALLS = {
  LABELS: { app: "web" },
  GENERATOR: "grpc",
  ASKS: ["xds.istio.io/grpc/lds/inbound/0.0.0.0:80", ...DIALLED.map((host) => `${host}:80`)],
};

const NODES = [
  node("plain", "sidecar", {}),
  node("web", "sidecar", { LABELS: { app: "web" } }),
  node("hosts", "sidecar", { LABELS: { app: "web" }, VHDS: "true" }),
  node("edge", "router", { LABELS: { app: "edge" } }),
  node("calls", "sidecar", CALLS),
];

const RUNS = 40;

it("a tenant is offered nothing private of another, whatever both write", async () => {
  await holds(
    fc.asyncProperty(randomDocs(OWN), randomDocs(OTHER), randomDocs(SECRET), async (own, other, secret) => {
      const mesh = meshWith([...own, ...other, ...secret]);
      expect(await traces(mesh)).toEqual([]);
    }),
    { numRuns: RUNS },
  );
});

it("what another tenant changes in private changes no version", async () => {
  await holds(
    fc.asyncProperty(fc.tuple(...[OWN, OTHER, SECRET, SECRET].map(randomDocs)), async ([own = [], other = [], before = [], after = []]) => {
      const mesh = meshWith([...own, ...other, ...before]);
      const versions = await versionsOf(mesh);
      mesh.change({ remove: before.map(keyOf), put: textOf(after) });
      expect(await versionsOf(mesh)).toEqual(versions);
      mesh.change({ remove: after.map(keyOf) });
      expect(await versionsOf(mesh)).toEqual(versions);
    }),
    { numRuns: RUNS },
  );
});

it("what is offered depends on the objects, not on the order in which they came", async () => {
  const all = fc.tuple(randomDocs(OWN), randomDocs(OTHER), randomDocs(SECRET)).map((lists) => lists.flat());
  const shuffled = all.chain((docs) => fc.tuple(fc.constant(docs), fc.shuffledSubarray([...docs], { minLength: docs.length })));
  await holds(
    fc.asyncProperty(shuffled, async ([docs, otherwise]) => {
      const versions = await versionsOf(meshWith(docs));
      const mesh = meshWith([]);
      for (const doc of otherwise) {
        mesh.change({ put: textOf([doc]) });
        await versionsOf(mesh);
      }
      expect(await versionsOf(mesh)).toEqual(versions);
    }),
    { numRuns: RUNS / 2 },
  );
});

const meshWith = (docs: readonly Doc[]): TestMesh => meshOf({ documents: [EDGE, textOf(docs)], nodes: NODES });

/** Every version offered, by proxy, type and name: a hash of bytes, so equal versions are equal bytes. */
async function versionsOf(mesh: TestMesh): Promise<Readonly<Record<string, string>>> {
  const versions: Record<string, string> = {};
  for (const proxy of mesh.proxies) {
    for (const [type, { resources, failed }] of await mesh.resources(proxy)) {
      for (const { name, version } of resources.values()) versions[`${proxy.name} ${type} ${name}`] = version;
      for (const { name, message } of failed) {
        if (!message.includes("gRPC clients look up a name only")) throw new Error(`${proxy.name} ${name} failed: ${message}`);
        versions[`${proxy.name} ${type} ${name}`] = message;
      }
    }
  }
  return versions;
}

async function traces(mesh: TestMesh): Promise<readonly string[]> {
  const found: string[] = [];
  for (const proxy of mesh.proxies) {
    for (const { resources } of (await mesh.resources(proxy)).values()) {
      for (const { name, body } of resources.values()) {
        const text = Buffer.from(body).toString("latin1");
        for (const trace of TRACES) if (text.includes(trace)) found.push(`${trace} in ${name} of ${proxy.name}`);
      }
    }
  }
  return found;
}
