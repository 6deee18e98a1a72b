import assert from "node:assert/strict";
import { create } from "@bufbuild/protobuf";
import fc from "fast-check";
import { describe, it } from "vitest";
import { nodeOf } from "../../bench/client.ts";
import { endpointEdit, privateEdit, routeEdit, type SceneShape, sceneProxies } from "../../bench/scene.ts";
import { sceneWorld } from "../../bench/scene-world.ts";
import { NodeSchema } from "../../src/gen/envoy/config/core/v3/base_pb.js";
import { readNode } from "../../src/generate/proxy-view.ts";
import { leaseProviders } from "../../src/serve/leases.ts";
import { messageRegistry } from "../../src/wire/json.ts";
import { ENDPOINT_TYPE, ROUTE_TYPE, shortTypeName, VIRTUAL_HOST_TYPE } from "../../src/wire/type-urls.ts";
import { createNameSets } from "../../src/xds/name-sets.ts";
import { holds } from "../support/holds.ts";

const SHAPE: SceneShape = {
  services: 8,
  endpoints: 2,
  namespaces: 3,
  virtualServices: 3,
  destinationRules: 3,
  proxies: 6,
  classes: 3,
  vhds: true,
};

/** What comes and goes: for some of the types, some of the proxies, or all of both. */
const OBJECTS: Readonly<Record<string, string>> = {
  "Sidecar/ns-1/narrow": `apiVersion: networking.istio.io/v1
kind: Sidecar
metadata: {name: narrow, namespace: ns-1}
spec: {egress: [{hosts: [./*]}]}
`,
  "DestinationRule/ns-0/pooled": `apiVersion: networking.istio.io/v1
kind: DestinationRule
metadata: {name: pooled, namespace: ns-0}
spec: {host: "*.ns-0.svc.cluster.local", workloadSelector: {matchLabels: {app: app-0}}, trafficPolicy: {tls: {mode: SIMPLE}}}
`,
  "EnvoyFilter/ns-2/patched": `apiVersion: networking.istio.io/v1alpha3
kind: EnvoyFilter
metadata: {name: patched, namespace: ns-2}
spec:
  configPatches:
  - {applyTo: CLUSTER, match: {context: SIDECAR_OUTBOUND}, patch: {operation: MERGE, value: {connect_timeout: 3s}}}
  - {applyTo: VIRTUAL_HOST, match: {context: SIDECAR_OUTBOUND}, patch: {operation: MERGE, value: {include_request_attempt_count: false}}}
`,
  "PeerAuthentication/ns-1/strict": `apiVersion: security.istio.io/v1
kind: PeerAuthentication
metadata: {name: strict, namespace: ns-1}
spec: {mtls: {mode: STRICT}}
`,
};

type Edit = { readonly kind: "route" | "private" | "endpoint"; readonly step: number } | { readonly kind: "toggle"; readonly key: string };

const someEdit: fc.Arbitrary<Edit> = fc.oneof(
  fc.record({ kind: fc.constantFrom("route" as const, "private" as const, "endpoint" as const), step: fc.nat(3) }),
  fc.record({ kind: fc.constant("toggle" as const), key: fc.constantFrom(...Object.keys(OBJECTS)) }),
);

/** A world whose proxies ask through leases, as connected ones do, and how to look what each is told. */
async function setUp() {
  const scene = sceneWorld(SHAPE);
  const { world } = scene;
  world.patches.use(await messageRegistry());
  const names = createNameSets();
  const leases = leaseProviders(world.engine, world.providers);
  const proxies = sceneProxies(SHAPE).map((proxy) => {
    const facts = readNode(create(NodeSchema, nodeOf(proxy)));
    assert.ok(!("refused" in facts));
    const wanted = new Map<string, readonly string[]>();
    scene.ask(proxy, (typeUrl, { resources }) => wanted.set(typeUrl, [...resources.keys()]));
    return { id: proxy.name, facts, wanted };
  });
  const put = (edit: Edit): void => {
    if (edit.kind === "toggle") {
      if (world.inputs.objects.get(edit.key) !== undefined) world.inputs.objects.delete(edit.key);
      else scene.put(OBJECTS[edit.key] ?? "");
    } else if (edit.kind === "private") scene.put(privateEdit(SHAPE, edit.step).text);
    else scene.put((edit.kind === "route" ? routeEdit : endpointEdit)(edit.step).text);
  };
  const look = (): void => {
    for (const { id, facts, wanted: asked } of proxies) {
      const view = leases.view(id, facts, () => world.view(facts));
      for (const [at, provider] of leases.providers.entries()) {
        const { typeUrl } = provider;
        const named = asked.get(typeUrl === VIRTUAL_HOST_TYPE ? ROUTE_TYPE : typeUrl);
        if (named === undefined) continue;
        const wanted = { wildcard: typeUrl !== ENDPOINT_TYPE && typeUrl !== ROUTE_TYPE, names: names.of([...named]) };
        if (provider.isPrepared?.(view, wanted) !== true) for (const _ of provider.prepare(view, wanted));
        const told = provider.offered(view, wanted);
        assert.equal(told, world.providers[at]?.offered(view, wanted), `${shortTypeName(typeUrl)} of ${id}`);
      }
    }
  };
  return { put, look };
}

describe("what proxies are told through leases", () => {
  it("is what they would be told if they had never asked before, after any changes", async () => {
    const { put, look } = await setUp();
    look();
    holds(
      fc.property(fc.array(fc.array(someEdit, { minLength: 1, maxLength: 3 }), { minLength: 1, maxLength: 6 }), (rounds) => {
        for (const edits of rounds) {
          for (const edit of edits) put(edit);
          look();
        }
      }),
      { numRuns: 60 },
    );
  });
});
