import assert from "node:assert/strict";
import { describe, it } from "vitest";
import { debugPagesOf } from "../../test/support/debug-pages.ts";
import { buildSecret } from "../envoy/tls/index.ts";
import { SecretSchema } from "../gen/envoy/extensions/transport_sockets/tls/v3/secret_pb.js";
import { encoded } from "../wire/encode.ts";
import { SECRET_TYPE } from "../wire/type-urls.ts";
import type { ConfigDump, ConfigRecord, Connections, MeshState, PortEndpoints, ProblemRecord, RegistryService } from "./api-types.ts";
import type { DebugDeps } from "./debug-deps.ts";
import { reportedProxies } from "./reported-proxies.ts";
import { clusterOf, dumpOf, setOf, streamOf, testView, typeStateOf } from "./stream-fixture.ts";

const CONFIG = `apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: {name: reviews}
spec:
  hosts: [reviews.example]
  ports: [{number: 80, name: http, protocol: HTTP}]
  resolution: STATIC
  endpoints: [{address: 10.0.0.7, labels: {version: v1}}]
---
apiVersion: networking.istio.io/v1
kind: DestinationRule
metadata: {name: reviews}
spec: {host: reviews.example}
---
apiVersion: v1
kind: Secret
metadata:
  name: key
  annotations: {kubectl.kubernetes.io/last-applied-configuration: '{"stringData":{"tls.key":"hunter2"}}'}
type: kubernetes.io/tls
stringData: {tls.key: hunter2}
`;

const control = (text = CONFIG) => debugPagesOf(text);

/** A proxy that asked for its clusters first, and for a secret on a later stream. */
function withStreamForSecrets(): DebugDeps["xds"] {
  const view = testView();
  const cluster = clusterOf("outbound|80||main");
  const name = "kubernetes://key";
  const secret = encoded({ typeUrl: SECRET_TYPE, name }, SecretSchema, buildSecret(name, { is: "roots", roots: Buffer.from("root") }));
  const wanted = { wildcard: false, names: { id: 1, names: new Set([name]) } };
  const dumps = new Map([
    ["main", dumpOf(view, [cluster], setOf(cluster))],
    ["secrets", { ...dumpOf(view, [], setOf()), types: [{ typeUrl: SECRET_TYPE, wanted, held: [secret], offered: setOf(secret) }] }],
  ]);
  return {
    state: () => [
      streamOf([typeStateOf({})], { id: "main", connectedAt: 1 }),
      streamOf([typeStateOf({ typeUrl: SECRET_TYPE })], { id: "secrets", connectedAt: 2 }),
    ],
    dump: (id) => dumps.get(id),
  };
}

const ABOUT_ONE_PROXY = ["config_dump", "cdsz", "ldsz", "edsz", "ecdsz", "ndsz", "sidecarz"].map((name) => `/debug/${name}`);

describe("debugRoutes", () => {
  it("wants the token for every page", async () => {
    const { routes } = await control();
    assert.ok(routes.every(({ open }) => !open));
  });

  it("answers every page with JSON", async () => {
    const { routes, ask } = await control();
    for (const { path } of routes)
      assert.equal((await ask(ABOUT_ONE_PROXY.includes(path) ? `${path}?proxyID=web.shop` : path)).status, 200, path);
  });

  it("shows objects in Kubernetes' shape with their place, by kind, plural or short name", async () => {
    const { page } = await control();
    for (const type of ["DestinationRule", "destinationrules", "dr"]) {
      const [rule, ...others] = await page<ConfigRecord[]>(`/debug/configz?type=${type}`);
      assert.equal(others.length, 0);
      assert.deepEqual(rule, {
        apiVersion: "networking.istio.io/v1",
        kind: "DestinationRule",
        metadata: { name: "reviews", namespace: "shop" },
        spec: { host: "reviews.example" },
        origin: { source: "files", at: "conf/shop/a.yaml:10" },
      });
    }
  });

  it("shows the names an agent resolves, and which proxy it would have to be told", async () => {
    const { page, ask } = await control(CONFIG.replace("hosts: [reviews.example]", "hosts: [reviews.example]\n  addresses: [10.3.0.1]"));
    const table = { "reviews.example": { ips: ["10.3.0.1"], registry: "External" } };
    const type = "type.googleapis.com/istio.networking.nds.v1.NameTable";
    assert.deepEqual(await page("/debug/ndsz?proxyID=web.shop"), { configs: [{ "@type": type, table }] });
    assert.equal((await ask("/debug/ndsz")).status, 400);
    assert.equal((await ask("/debug/ndsz?proxyID=gone.shop")).status, 404);
  });

  it("never shows what is in a Secret", async () => {
    const { page } = await control();
    const secrets = await page<ConfigRecord[]>("/debug/configz?type=Secret");
    assert.deepEqual(secrets[0]?.data, { "tls.key": "[redacted]" });
    assert.equal(secrets[0]?.type, "kubernetes.io/tls");
    assert.ok(!JSON.stringify(await page("/debug/configz")).includes("hunter2"));
  });

  it("marks a last good version, and says what is wrong with the document", async () => {
    const { say, page } = await control();
    await say(CONFIG.replace("spec: {host: reviews.example}", "spec: {hosts: reviews.example}"));
    const [rule] = await page<ConfigRecord[]>("/debug/configz?type=dr");
    assert.equal(rule?.origin.stale, true);
    assert.deepEqual(rule?.spec, { host: "reviews.example" });
    const problems = await page<ProblemRecord[]>("/debug/problems");
    assert.deepEqual(
      problems.map(({ code, path, line }) => [code, path, line]),
      [["schema.unknown-field", "spec.hosts", 13]],
    );
  });

  it("shows services and endpoints with the object they come from", async () => {
    const { page } = await control();
    const [service] = await page<RegistryService[]>("/debug/registryz");
    assert.equal(service?.hostname, "reviews.example");
    assert.deepEqual(service?.origin, { object: "ServiceEntry/shop/reviews", at: "conf/shop/a.yaml:1" });
    const [port] = await page<PortEndpoints[]>("/debug/endpointz?host=reviews.example");
    assert.equal(port?.svc, "reviews.example:80");
    assert.deepEqual(
      port?.ep.map(({ address, health }) => [address, health]),
      [["10.0.0.7", "healthy"]],
    );
    assert.deepEqual(await page("/debug/endpointz?host=other"), []);
  });

  it("finds a proxy by name.namespace, name or node id, and says so when it is not there", async () => {
    const { ask } = await control();
    for (const id of ["web.shop", "web", testView().id])
      assert.equal((await ask(`/debug/config_dump?proxyID=${encodeURIComponent(id)}`)).status, 200, id);
    assert.equal((await ask("/debug/config_dump?proxyID=other.shop")).status, 404);
    assert.equal((await ask("/debug/config_dump")).status, 400);
  });

  it("tells of each resource the objects it was made from", async () => {
    const { page } = await control();
    const dump = await page<ConfigDump>("/debug/config_dump?proxyID=web.shop&why");
    const part = dump.configs[0];
    assert.ok(part !== undefined && "dynamicActiveClusters" in part);
    const cluster = part.dynamicActiveClusters?.find((one) => (one.cluster as { name: string }).name === "outbound|80||reviews.example");
    assert.deepEqual(cluster?.why?.map(({ object, at }) => `${object} ${at}`).sort(), [
      "DestinationRule/shop/reviews conf/shop/a.yaml:10",
      "ServiceEntry/shop/reviews conf/shop/a.yaml:1",
    ]);
  });

  it("shows what a proxy has on all its streams, whichever is the newest", async () => {
    const { page } = await debugPagesOf(CONFIG, { deps: { xds: withStreamForSecrets() } });
    const proxy = "proxyID=web.shop";
    const dump = JSON.stringify(await page(`/debug/config_dump?${proxy}`));
    const of = async (types: string) => (await page<{ configs: unknown[] }>(`/debug/config_dump?${proxy}&types=${types}`)).configs;
    assert.ok(dump.includes("outbound|80||main") && dump.includes("kubernetes://key"));
    assert.deepEqual([(await of("cds")).length, (await of("sds")).length, (await of("cds,sds")).length], [1, 1, 2]);
    assert.equal((await page<Connections>(`/debug/adsz?${proxy}`)).totalClients, 2);
    assert.deepEqual(
      [...reportedProxies(withStreamForSecrets())].map(({ types }) => types.length),
      [2],
    );
  });

  it("shows what of mesh.yaml is in force and what waits for a restart", async () => {
    const mesh = await (await control()).page<MeshState>("/debug/mesh");
    assert.equal((mesh.mesh as { trustDomain: string }).trustDomain, "cluster.local");
    assert.deepEqual(mesh.needsRestart, [{ field: "listen.grpcAddr", sentence: "later" }]);
    assert.deepEqual(mesh.reloadProblems, []);
  });
});
