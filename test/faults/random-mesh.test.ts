import { create } from "@bufbuild/protobuf";
import fc from "fast-check";
import { expect, it } from "vitest";
import { levelOf } from "../../src/config/problem.ts";
import { NodeSchema } from "../../src/gen/envoy/config/core/v3/base_pb.js";
import { type Doc, textOf } from "../properties/doc.ts";
import { KNOWN_MESHES } from "../properties/known-meshes.ts";
import { randomDocs, type Writer } from "../properties/random-mesh.ts";
import { type WideMesh, wideMesh, wideMeshOf } from "../properties/wide-mesh.ts";
import { assertEnvoyAcceptsAll, type Offer } from "../support/envoy-validate.ts";
import { holds } from "../support/holds.ts";
import { type MeshParts, meshOf, type TestMesh } from "../support/mesh-from.ts";

const HOSTS = ["h0.test", "h1.test", "*.wild.test"];
const WRITER: Writer = {
  ...{ namespace: "a", mark: "own", net: "10.1", created: ["2026-01-01"], exportTo: [undefined, ["."]] },
  ...{ hosts: HOSTS, declares: HOSTS, delegates: ["a/own-delegate-0"] },
};
const EDGE = `
apiVersion: networking.istio.io/v1
kind: Gateway
metadata: {name: edge, namespace: a}
spec: {selector: {app: edge}, servers: [{port: {number: 80, name: http, protocol: HTTP}, hosts: ["*"]}, {port: {number: 5000, name: tcp, protocol: TCP}, hosts: ["*"]}]}
`;
const node = (type: string, app: string): MeshParts["nodes"][number] => ({
  name: `${type}-${app}`,
  node: create(NodeSchema, { id: `${type}~10.1.9.9~${app}.a~a.svc.cluster.local`, metadata: { NAMESPACE: "a", LABELS: { app } } }),
});
const NODES = [node("sidecar", "web"), node("sidecar", "plain"), node("router", "edge")];

/** What every proxy of a mesh is offered. Nothing may have failed. */
async function offersOf(mesh: TestMesh, text: string): Promise<readonly Offer[]> {
  const offers: Offer[] = [];
  for (const proxy of mesh.proxies) {
    const resources = await mesh.resources(proxy);
    for (const [type, { failed }] of resources)
      expect({ proxy: proxy.name, type, failed }).toEqual({ proxy: proxy.name, type, failed: [] });
    offers.push({ label: `${proxy.name} with ${text}`, resources });
  }
  return offers;
}

const versionsOf = (offers: readonly Offer[]): readonly (readonly string[])[] =>
  offers.map(({ resources }) =>
    [...resources]
      .flatMap(([typeUrl, set]) => [...set.resources.values()].map(({ name, version }) => `${typeUrl} ${name} ${version}`))
      .sort(),
  );

it("Envoy accepts what is made of any configuration of several objects for the same hosts, and the same is made of it again", async () => {
  const offers: Offer[] = [];
  await holds(
    fc.asyncProperty(randomDocs(WRITER), async (docs) => {
      const made = () => offersOf(meshOf({ documents: [EDGE, textOf(docs)], nodes: NODES }), textOf(docs));
      const [once, again] = [await made(), await made()];
      expect(versionsOf(again)).toEqual(versionsOf(once));
      offers.push(...once);
    }),
    { numRuns: 24 },
  );
  await assertEnvoyAcceptsAll(offers);
});

/** Proxies that look names up in the same way: Envoy has one cache of names for all of a bootstrap, and refuses two that differ. */
const FAMILIES: readonly (readonly string[])[] = [["web", "plain", "hosts", "edge"], ["six", "edge-six"], ["both"]];

it("Envoy accepts what is made of objects of all kinds, which depends neither on their order nor on what was there before", async () => {
  const offers: Offer[] = [];
  const shuffled = wideMesh.chain((one) => fc.tuple(fc.constant(one), fc.shuffledSubarray([...one.docs], { minLength: one.docs.length })));
  await holds(
    fc.asyncProperty(shuffled, async ([one, otherwise]) => {
      const mesh = wideMeshOf(one);
      expect(mesh.problems.filter(({ code }) => levelOf(code) === "error")).toEqual([]);
      const once = await offersOf(mesh, textOf(one.docs));
      expect(versionsOf(await offersStepwise(one, otherwise))).toEqual(versionsOf(once));
      offers.push(...once);
    }),
    { numRuns: 40, examples: KNOWN_MESHES.map((one) => [[one, [...one.docs].reverse()]]) },
  );
  for (const family of FAMILIES) await assertEnvoyAcceptsAll(offers.filter(({ label }) => family.includes(label.split(" ")[0] ?? "")));
});

/** Of objects that came in another order and in two parts, with an answer between. */
async function offersStepwise({ mesh: settings }: WideMesh, docs: readonly Doc[]): Promise<readonly Offer[]> {
  const half = Math.floor(docs.length / 2);
  const mesh = wideMeshOf({ docs: docs.slice(0, half), mesh: settings });
  const [first] = mesh.proxies;
  if (first !== undefined) await mesh.resources(first);
  mesh.change({ put: textOf(docs.slice(half)) });
  return offersOf(mesh, textOf(docs));
}
