import assert from "node:assert/strict";
import { create } from "@bufbuild/protobuf";
import { describe, it } from "vitest";
import { debugPagesOf } from "../../test/support/debug-pages.ts";
import { MeshNetworksSchema } from "../gen/istio/mesh/v1alpha1/mesh_networks_pb.js";
import { CLUSTER_TYPE, LISTENER_TYPE } from "../wire/type-urls.ts";
import type { EndpointShards, PolicyRecord, PushStatus, ServedPort, SidecarScope, WatchedKind } from "./api-mesh-types.ts";
import { indexRoutes } from "./debug-routes.ts";
import { streamOf, testView, typeStateOf } from "./stream-fixture.ts";

/** An object by its kind and its name, in namespace `shop` where it says no other (`namespace/name`). */
const object = (kind: string, named: string, spec: string): string => {
  const [name, namespace = "shop"] = named.split("/").reverse();
  return `{kind: ${kind}, apiVersion: ${VERSIONS[kind]}, metadata: {name: ${name}, namespace: ${namespace}}, spec: ${spec}}`;
};

const VERSIONS: Readonly<Record<string, string>> = {
  ServiceEntry: "networking.istio.io/v1",
  DestinationRule: "networking.istio.io/v1",
  VirtualService: "networking.istio.io/v1",
  Sidecar: "networking.istio.io/v1",
  AuthorizationPolicy: "security.istio.io/v1",
  PeerAuthentication: "security.istio.io/v1",
  RequestAuthentication: "security.istio.io/v1",
  Telemetry: "telemetry.istio.io/v1",
};

const CONFIG = [
  object(
    "ServiceEntry",
    "web",
    "{hosts: [web.example], ports: [{number: 80, name: http, protocol: HTTP, targetPort: 8080}], resolution: STATIC, endpoints: [{address: 10.0.0.1, labels: {app: web}, weight: 3}]}",
  ),
  object("ServiceEntry", "mall/far", "{hosts: [far.example], ports: [{number: 443, name: tls, protocol: TLS}], resolution: DNS}"),
  object("DestinationRule", "mall/far", "{host: far.example}"),
  object("Sidecar", "narrow", "{egress: [{hosts: [mall/*]}], outboundTrafficPolicy: {mode: REGISTRY_ONLY}}"),
  object("AuthorizationPolicy", "istio-system/everyone", "{}"),
  object("AuthorizationPolicy", "web", "{selector: {matchLabels: {app: web}}}"),
  object("AuthorizationPolicy", "other", "{selector: {matchLabels: {app: other}}}"),
  object(
    "PeerAuthentication",
    "web",
    "{selector: {matchLabels: {app: web}}, mtls: {mode: STRICT}, portLevelMtls: {8080: {mode: DISABLE}}}",
  ),
  object("PeerAuthentication", "mall/mall", "{mtls: {mode: DISABLE}}"),
  object("RequestAuthentication", "issuer", "{jwtRules: [{issuer: me}]}"),
  object("Telemetry", "istio-system/mesh", "{tracing: [{randomSamplingPercentage: 5}]}"),
  object("Telemetry", "mall/mall", "{tracing: [{randomSamplingPercentage: 6}]}"),
].join("\n---\n");

const names = (policies: Readonly<Record<string, readonly PolicyRecord[]>>): readonly string[] =>
  Object.values(policies)
    .flat()
    .map(({ namespace, name }) => `${namespace}/${name}`)
    .sort();

describe("debug pages about the mesh", () => {
  it("show what a proxy is offered of one type, and of types it does not ask for nothing", async () => {
    const { page, ask } = await debugPagesOf(CONFIG);
    const { configs } = await page<{ configs: readonly { "@type": string; name: string }[] }>("/debug/cdsz?proxyID=web.shop");
    assert.ok(configs.some(({ name }) => name === "outbound|80||web.example"));
    assert.deepEqual(new Set(configs.map((one) => one["@type"])), new Set([CLUSTER_TYPE]));
    assert.deepEqual(await page("/debug/config_dump?proxyID=web.shop&types=cds,lds"), { configs });
    for (const type of ["lds", "eds", "ecds"]) assert.deepEqual(await page(`/debug/${type}z?proxyID=web.shop`), { configs: [] });
    for (const type of ["cds", "lds", "eds", "ecds"]) {
      assert.equal((await ask(`/debug/${type}z`)).status, 400);
      assert.equal((await ask(`/debug/${type}z?proxyID=gone.shop`)).status, 404);
    }
  });

  it("say of a proxy that is not here what makes Istio's tools ask another replica", async () => {
    const { ask } = await debugPagesOf(CONFIG);
    assert.match(JSON.stringify((await ask("/debug/cdsz?proxyID=gone.shop")).body), /Proxy not connected to this Pilot instance/);
  });

  it("show the service ports that a proxy serves", async () => {
    const { page } = await debugPagesOf(CONFIG);
    const served = await page<Readonly<Record<string, readonly ServedPort[]>>>("/debug/instancesz");
    assert.deepEqual(Object.keys(served), ["web.shop"]);
    assert.deepEqual(
      served["web.shop"]?.map(({ Service, Port }) => [Service.hostname, Port]),
      [["web.example", { name: "http", port: 80, protocol: "HTTP", TargetPort: 8080 }]],
    );
  });

  it("show endpoints by host, namespace and where they come from", async () => {
    const { page } = await debugPagesOf(CONFIG);
    const shards = await page<Readonly<Record<string, Readonly<Record<string, EndpointShards>>>>>("/debug/endpointShardz");
    assert.deepEqual(Object.keys(shards).sort(), ["far.example", "web.example"]);
    const [[key, endpoints = []] = []] = Object.entries(shards["web.example"]?.shop?.Shards ?? {});
    assert.equal(key, "External/Kubernetes");
    assert.partialDeepStrictEqual(endpoints[0], {
      Addresses: ["10.0.0.1"],
      EndpointPort: 8080,
      ServicePortName: "http",
      LbWeight: 3,
      HealthStatus: 1,
      Namespace: "shop",
      Labels: { app: "web" },
    });
    assert.deepEqual(Object.keys(await page<object>("/debug/endpointShardz?host=far.example")), ["far.example"]);
  });

  it("show what a proxy may see, and the Sidecar that says so", async () => {
    const { page } = await debugPagesOf(CONFIG, { view: testView({ sidecar: "Sidecar/shop/narrow" }) });
    const scope = await page<SidecarScope>("/debug/sidecarz?proxyID=web.shop");
    assert.equal(scope.name, "narrow");
    assert.equal(scope.sidecar?.object, "Sidecar/shop/narrow");
    assert.deepEqual(scope.outboundTrafficPolicy, { mode: "REGISTRY_ONLY" });
    assert.deepEqual(scope.services, [{ hostname: "far.example", namespace: "mall" }]);
    assert.deepEqual(scope.destinationRules, { "far.example": ["DestinationRule/mall/far"] });
    const all = await (await debugPagesOf(CONFIG)).page<SidecarScope>("/debug/sidecarz?proxyID=web.shop");
    assert.equal([...all.services].length, 2);
    assert.equal(all.name, undefined);
  });

  it("show gateways into other networks", async () => {
    const { world, page } = await debugPagesOf(CONFIG);
    assert.deepEqual(await page("/debug/networkz"), []);
    world.engine.batch(() =>
      world.inputs.networks.set(
        "networks",
        create(MeshNetworksSchema, { networks: { west: { gateways: [{ gw: { case: "address", value: "192.0.2.1" }, port: 15443 }] } } }),
      ),
    );
    assert.deepEqual(await page("/debug/networkz"), [{ Network: "west", Addr: "192.0.2.1", Port: 15443 }]);
  });

  it("show all policies, and those that hold for a proxy", async () => {
    const { page } = await debugPagesOf(CONFIG);
    type Authorization = { authorization_policies: { namespace_to_policies: Record<string, PolicyRecord[]>; root_namespace: string } };
    const all = (await page<Authorization>("/debug/authorizationz")).authorization_policies;
    assert.equal(all.root_namespace, "istio-system");
    assert.deepEqual(names(all.namespace_to_policies), ["istio-system/everyone", "shop/other", "shop/web"]);
    assert.deepEqual(all.namespace_to_policies.shop?.[0]?.spec, { selector: { matchLabels: { app: "other" } } });
    const own = (await page<Authorization>("/debug/authorizationz?proxyID=web.shop")).authorization_policies;
    assert.deepEqual(names(own.namespace_to_policies), ["istio-system/everyone", "shop/web"]);

    type Telemetries = { telemetries: { namespace_to_telemetries: Record<string, PolicyRecord[]> } };
    const telemetries = async (query = "") =>
      names((await page<Telemetries>(`/debug/telemetryz${query}`)).telemetries.namespace_to_telemetries);
    assert.deepEqual(await telemetries(), ["istio-system/mesh", "mall/mall"]);
    assert.deepEqual(await telemetries("?proxyID=web.shop"), ["istio-system/mesh"]);

    type Policies = { namespace_to_policies: Record<string, PolicyRecord[]> };
    type Authentication = { peer_authentications: Policies; request_authentications: Policies; mtls?: unknown };
    const everyone = await page<Authentication>("/debug/authenticationz");
    assert.deepEqual(names(everyone.peer_authentications.namespace_to_policies), ["mall/mall", "shop/web"]);
    assert.equal(everyone.mtls, undefined);
    const web = await page<Authentication>("/debug/authenticationz?proxyID=web.shop");
    assert.deepEqual(names(web.peer_authentications.namespace_to_policies), ["shop/web"]);
    assert.deepEqual(names(web.request_authentications.namespace_to_policies), ["shop/issuer"]);
    assert.deepEqual(web.mtls, { mode: "strict", ports: [{ port: 8080, mode: "disable" }] });
  });

  it("show of a namespace nothing of others, and what is not divided not at all", async () => {
    const { routes, ask } = await debugPagesOf(CONFIG);
    const divided: string[] = [];
    for (const { path } of routes) {
      const { status, body } = await ask(path, "mall");
      if (status !== 403) divided.push(path.slice("/debug/".length));
      assert.doesNotMatch(JSON.stringify(body) ?? "", /web\.shop|web\.example|"shop"/, path);
      assert.equal(
        (await ask(`${path}?proxyID=web.shop`, "mall")).status === 200,
        ["configz", "connections", "instancesz", "syncz"].some((name) => path === `/debug/${name}`),
        path,
      );
    }
    assert.deepEqual(
      divided.sort(),
      "adsz authenticationz authorizationz cdsz config_dump configz connections ecdsz edsz instancesz ldsz ndsz sidecarz syncz telemetryz".split(
        " ",
      ),
    );
  });

  it("tell of a namespace where its own objects are written, and of those of others that concern it only which they are", async () => {
    const { page } = await debugPagesOf(CONFIG);
    const origins = async (namespace?: string): Promise<ReadonlySet<string>> => {
      const dump = JSON.stringify(await page("/debug/config_dump?proxyID=web.shop&why", namespace));
      return new Set(
        [...dump.matchAll(/"object":"(\w+\/\w+\/\w+)"(,"at":)?/g)].map(([, object, at]) => `${object}${at === undefined ? "" : " at"}`),
      );
    };
    assert.ok((await origins()).has("ServiceEntry/mall/far at"));
    const own = await origins("shop");
    assert.ok(own.has("ServiceEntry/shop/web at") && own.has("ServiceEntry/mall/far") && !own.has("ServiceEntry/mall/far at"));
  });

  it("show what came of the last push, and who is behind", async () => {
    const lastPush = () => ({
      ...{ round: 7, reason: "VirtualService/shop/web", proxies: 2, ms: 12.4, rejections: 1, unsettled: 0 },
      resources: new Map([[CLUSTER_TYPE, 3]]),
    });
    const refused = { name: "x", version: "1", error: "no good", fallback: undefined };
    const types = [
      typeStateOf({ inSync: false }),
      typeStateOf({ typeUrl: LISTENER_TYPE, rejected: [refused], failed: [{ name: "y", message: "why" }] }),
    ];
    const deps = { lastPush, xds: { state: () => [streamOf(types), streamOf([], { node: "", view: undefined })], dump: () => undefined } };
    const status = await (await debugPagesOf(CONFIG, { deps })).page<PushStatus>("/debug/push_status");
    assert.deepEqual(status, {
      last: { push: 7, reason: "VirtualService/shop/web", proxies: 2, ms: 12, rejections: 1, unsettled: 0, resources: { CDS: 3 } },
      behind: [{ proxy: "web.shop", types: ["CDS"] }],
      rejected: [{ proxy: "web.shop", type: "LDS", name: "x", message: "no good" }],
      failed: [{ proxy: "web.shop", type: "LDS", name: "y", message: "why" }],
    });
  });

  it("name the kinds that are read, and themselves", async () => {
    const { page, routes } = await debugPagesOf(CONFIG);
    const kinds = await page<readonly WatchedKind[]>("/debug/resourcesz");
    assert.ok(kinds.some(({ group, version, kind }) => group === "networking.istio.io" && version === "v1" && kind === "VirtualService"));
    const acting = { path: "/debug/act", open: false, acts: true, about: "", answer: () => ({ status: 200, body: "" }) } as const;
    const index = indexRoutes([...routes, acting]);
    const [all, list] = await Promise.all(index.map(async ({ answer }) => (await answer(new URLSearchParams())).body as readonly object[]));
    assert.equal(all?.length, routes.length + 1);
    assert.ok(list?.every((name) => routes.some(({ path }) => path === `/debug/${name}`)));
    assert.equal(list?.length, routes.length);
  });
});
