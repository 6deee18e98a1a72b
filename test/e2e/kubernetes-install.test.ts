import { once } from "node:events";
import { existsSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { connect } from "node:tls";
import { afterAll, assert, beforeAll, describe, expect, it } from "vitest";
import { systemClock } from "../../src/base/clock.ts";
import { DEFAULT_INSTALL } from "../../src/install/install-options.ts";
import { istiodObjects } from "../../src/install/manifests.ts";
import {
  echoImage,
  idleImage,
  type NodeCluster,
  nodeClusterImpossible,
  type Pod,
  programImage,
  startNodeCluster,
} from "../cluster/start-node-cluster.ts";
import { eventually } from "../support/wait.ts";

const reason = nodeClusterImpossible();
if (reason !== undefined) console.warn(`skipped: ${reason}`);

/** Istio's own samples, where they lie beside the project. */
const SAMPLES = join(import.meta.dirname, "../../../shared/conformance/samples");
if (!existsSync(SAMPLES)) console.warn(`skipped: Istio's samples are not at ${SAMPLES}`);
const sample = (file: string): Promise<string> => readFile(join(SAMPLES, file), "utf8");
/** What stands for the programs of samples: it says which pod was called. */
const reviewsImage = { ...echoImage, args: ["--http", "9080"] };

const workload = (name: string, { image = "echo", version = "v1", namespace = "shop" } = {}): string => `
---
apiVersion: v1
kind: ServiceAccount
metadata: {name: ${name}, namespace: ${namespace}}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: ${name}-${version}, namespace: ${namespace}}
spec:
  selector: {matchLabels: {app: ${name}, version: ${version}}}
  template:
    metadata: {labels: {app: ${name}, version: ${version}}}
    spec:
      serviceAccountName: ${name}
      terminationGracePeriodSeconds: 5
      containers: [{name: ${image}, image: ${image}}]
`;

const ROUTES = `
---
apiVersion: v1
kind: Service
metadata: {name: catalog, namespace: shop}
spec: {selector: {app: catalog}, ports: [{name: http, port: 80, targetPort: 8080}]}
---
apiVersion: networking.istio.io/v1
kind: DestinationRule
metadata: {name: catalog, namespace: shop}
spec:
  host: catalog
  subsets: [{name: v1, labels: {version: v1}}, {name: v2, labels: {version: v2}}]
---
apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: {name: catalog, namespace: shop}
spec:
  hosts: [catalog]
  http:
  - match: [{headers: {end-user: {exact: jason}}}]
    route: [{destination: {host: catalog, subset: v2}}]
  - match: [{uri: {prefix: /old}}]
    rewrite: {uri: /new}
    route: [{destination: {host: catalog, subset: v1}}]
  - route: [{destination: {host: catalog, subset: v1}}]
---
apiVersion: security.istio.io/v1
kind: PeerAuthentication
metadata: {name: strict, namespace: shop}
spec: {mtls: {mode: STRICT}}
`;

const BAD_ROUTE = `
apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: {name: bad, namespace: shop}
spec:
  hosts: [catalog]
  http: [{route: [{destination: {host: catalog}}], redirect: {uri: /}}]
`;

/** Variables for all that runs in a namespace. */
const settings = (namespace: string, data: string): string =>
  `{apiVersion: v1, kind: ConfigMap, metadata: {name: istio-env, namespace: ${namespace}}, data: {${data}}}`;

const deployed = (file: string): Promise<string> => readFile(join(import.meta.dirname, "../../deploy", file), "utf8");

interface Echoed {
  readonly pod: string;
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
}

describe.skipIf(reason !== undefined)("deploy/istiod.yaml on a cluster whose pods run", () => {
  let cluster: NodeCluster;
  let istiods: readonly Pod[];

  beforeAll(async () => {
    const images = {
      echo: echoImage,
      idle: idleImage,
      proxyv2: programImage("istio-agent"),
      pilot: programImage("istiod"),
      "examples-bookinfo-reviews-v1": reviewsImage,
      "examples-bookinfo-reviews-v2": reviewsImage,
      "examples-bookinfo-reviews-v3": reviewsImage,
    };
    cluster = await startNodeCluster({ images });
    // The strictest of Kubernetes' standards for pods is enforced.
    const labels = "{pod-security.kubernetes.io/enforce: restricted}";
    await cluster.client.apply(`{apiVersion: v1, kind: Namespace, metadata: {name: istio-system, labels: ${labels}}}`, {
      fieldManager: "user",
    });
    await cluster.client.apply(settings("istio-system", "MAX_WORKLOAD_CERT_TTL: 2h"));
    await cluster.client.apply(await deployed("istiod.yaml"));
    istiods = await cluster.node.readyPods("istio-system", "app=istiod", { count: 2 });
    await eventually("webhooks are in force", async () => {
      const found = await cluster.client.get("ValidatingWebhookConfiguration", "istio-validator-istio-system");
      const injector = await cluster.client.get("MutatingWebhookConfiguration", "istio-sidecar-injector");
      return [found, injector].every((one) => JSON.stringify(one?.webhooks ?? "").includes('"Fail"'));
    });
  });
  afterAll(() => cluster?.stop());

  const callFrom = async (pod: string, ...flags: readonly string[]): Promise<Echoed> => {
    const { stdout, stderr } = await cluster.node.exec(pod, ["curl", "-fsS", "-m", "20", ...flags], { container: "idle" });
    assert(stdout !== "", stderr);
    return JSON.parse(stdout) as Echoed;
  };

  const logsOf = (pod: Pod): string => cluster.node.logs(`istio-system/${pod.metadata.name}`, "discovery");

  it("runs two replicas with one root, with the rights that are written there and no others", async () => {
    const logs = istiods.map(logsOf);
    expect(logs.filter((log) => log.includes("a new root certificate was made"))).toHaveLength(1);
    expect(logs.join("\n")).not.toMatch(/forbidden|EROFS|EACCES/i);
    for (const { status } of istiods)
      await eventually("all is well", async () => {
        const text = await (await fetch(`http://${status?.podIP}:8080/ready?verbose`)).text();
        if (/may not be read|"ok":false/.test(text)) throw new Error(text);
        return true;
      });
  });

  it("gives injected pods mutual TLS and routes as written", async () => {
    await cluster.client.apply(`
apiVersion: v1
kind: Namespace
metadata: {name: shop, labels: {istio-injection: enabled}}
---
${settings("shop", "ISTIO_META_TEAM: red")}
${workload("catalog")}${workload("catalog", { version: "v2" })}${workload("client", { image: "idle" })}${ROUTES}`);
    const [client] = await cluster.node.readyPods("shop", "app=client");
    const [first] = await cluster.node.readyPods("shop", "app=catalog,version=v1");
    await cluster.node.readyPods("shop", "app=catalog,version=v2");
    const name = `shop/${client?.metadata.name}`;
    const call = (path: string, ...flags: readonly string[]): Promise<Echoed> => callFrom(name, ...flags, `http://catalog${path}`);
    const rewritten = await eventually("an answer", () => call("/old/page"));
    expect(rewritten.url).toBe("/new/page");
    expect(rewritten.pod).toMatch(/^catalog-v1-/);
    const certificate = rewritten.headers["x-forwarded-client-cert"];
    expect(certificate).toContain("By=spiffe://cluster.local/ns/shop/sa/catalog");
    expect(certificate).toContain("URI=spiffe://cluster.local/ns/shop/sa/client");
    // A pod is ready before its endpoint has come to the client's proxy.
    await eventually("an answer of v2", () => call("/", "-H", "end-user: jason"));
    for (let turn = 0; turn < 5; turn++) expect((await call("/", "-H", "end-user: jason")).pod).toMatch(/^catalog-v2-/);
    for (let turn = 0; turn < 5; turn++) expect((await call("/")).pod).toMatch(/^catalog-v1-/);
    await eventually("who has no certificate of the mesh is refused", () =>
      fetch(`http://${first?.status?.podIP}:8080/`).then(
        () => false,
        () => true,
      ),
    );

    const admin = async (path: string): Promise<string> =>
      (await cluster.node.exec(name, ["curl", "-fsS", `http://127.0.0.1:15000${path}`], { container: "idle" })).stdout;
    expect(await admin("/config_dump?mask=bootstrap.node.metadata")).toContain('"TEAM": "red"');
    const [, ends = ""] = /"cert_chain".*?"expiration_time": "([^"]+)"/s.exec(await admin("/certs")) ?? [];
    expect(Date.parse(ends) - systemClock.now()).toBeLessThan(2 * 3_600_000 + 60_000);

    const agent = cluster.node.logs(name, "istio-proxy");
    expect(agent).not.toMatch(/EROFS|EACCES|is not known and ignored/);
  });

  it.skipIf(!existsSync(SAMPLES))("routes between Deployments of Istio's samples as its sample says, over mutual TLS", async () => {
    const namespace = "bookinfo";
    await cluster.client.apply(`{apiVersion: v1, kind: Namespace, metadata: {name: ${namespace}, labels: {istio-injection: enabled}}}`);
    for (const file of [
      "ambient-argo/application/reviews.yaml",
      "bookinfo/networking/destination-rule-reviews.yaml",
      "bookinfo/networking/virtual-service-reviews-jason-v2-v3.yaml",
    ])
      await cluster.client.apply(await sample(file), { namespace });
    await cluster.client.apply(workload("client", { image: "idle", namespace }));
    const [client] = await cluster.node.readyPods(namespace, "app=client");
    for (const version of ["v2", "v3"]) await cluster.node.readyPods(namespace, `app=reviews,version=${version}`);
    const call = (...flags: readonly string[]): Promise<Echoed> =>
      callFrom(`${namespace}/${client?.metadata.name}`, ...flags, "http://reviews:9080/reviews/0");
    const asJason = await eventually("an answer of v2", () => call("-H", "end-user: jason"));
    expect(asJason.pod).toMatch(/^reviews-v2-/);
    expect(asJason.headers["x-forwarded-client-cert"]).toContain("By=spiffe://cluster.local/ns/bookinfo/sa/bookinfo-reviews");
    await eventually("an answer of v3", () => call());
    for (let turn = 0; turn < 5; turn++) expect((await call()).pod).toMatch(/^reviews-v3-/);
    await cluster.client.delete("Namespace", namespace);
  });

  it("refuses a bad VirtualService with a message that says what to change", async () => {
    await expect(cluster.client.apply(BAD_ROUTE)).rejects.toThrow(/spec\.http\[0\]\.route: cannot be combined with redirect/);
    expect(await cluster.client.get("VirtualService", "shop/bad")).toBeUndefined();
  });

  it("is reached under the names of older versions, and may be exposed by a gateway", async () => {
    await cluster.client.apply(await deployed("compat-services.yaml"));
    await cluster.client.apply(await deployed("expose-istiod.yaml"));
    const roots = (await cluster.client.get("ConfigMap", "default/istio-ca-root-cert"))?.data as Record<string, string>;
    for (const [service, port] of Object.entries({
      "istio-pilot": 15011,
      "istio-citadel": 8060,
      "istio-sidecar-injector": 443,
      "istio-galley": 443,
    })) {
      const spec = (await cluster.client.get("Service", `istio-system/${service}`))?.spec as { readonly clusterIP?: string } | undefined;
      await eventually(`${service} leads to istiod`, async () => {
        const socket = connect({
          host: String(spec?.clusterIP),
          port,
          servername: `${service}.istio-system.svc`,
          ca: roots["root-cert.pem"] ?? "",
        });
        socket.setTimeout(5_000, () => socket.destroy(new Error("no answer")));
        await once(socket, "secureConnect");
        socket.destroy();
        return true;
      });
    }
  });

  it("lets a revision beside it take over a namespace, and give it back", async () => {
    const canary = istiodObjects({ ...DEFAULT_INSTALL, revision: "canary", replicas: 1 });
    await cluster.client.apply(canary.map((object) => JSON.stringify(object)).join("\n---\n"));
    await cluster.node.readyPods("istio-system", "app=istiod,istio.io/rev=canary");
    await eventually("webhooks of the revision are in force", async () =>
      JSON.stringify(await cluster.client.get("MutatingWebhookConfiguration", "istio-sidecar-injector-canary")).includes('"Fail"'),
    );
    const servedBy = async (labels: string, visitor: string): Promise<string> => {
      const pods = workload(visitor, { image: "idle", namespace: "next" });
      await cluster.client.apply(`{apiVersion: v1, kind: Namespace, metadata: {name: next, labels: ${labels}}}${pods}`);
      const [pod] = await cluster.node.readyPods("next", `app=${visitor}`);
      const name = `next/${pod?.metadata.name}`;
      const answer = await eventually("an answer", () => callFrom(name, "http://catalog.shop/"));
      expect(answer.headers["x-forwarded-client-cert"]).toContain(`URI=spiffe://cluster.local/ns/next/sa/${visitor}`);
      const { stdout } = await cluster.node.exec(name, ["sh", "-c", "echo $ISTIO_ADDRESS"], { container: "istio-proxy" });
      return stdout.trim();
    };
    expect(await servedBy("{istio.io/rev: canary}", "early")).toBe("istiod-canary.istio-system.svc:15012");
    expect(await servedBy("{istio-injection: enabled}", "late")).toBe("istiod.istio-system.svc:15012");
  });

  it("comes back by itself when every replica is gone, and traffic goes on meanwhile", async () => {
    const replicas = "app=istiod,istio=pilot";
    const before = await cluster.client.list("Pod", { namespace: "istio-system", labelSelector: replicas });
    for (const { metadata } of before) await cluster.client.delete("Pod", `istio-system/${metadata.name}`, { gracePeriodSeconds: 0 });
    const [client] = await cluster.node.readyPods("shop", "app=client");
    expect((await callFrom(`shop/${client?.metadata.name}`, "http://catalog/")).pod).toMatch(/^catalog-v1-/);
    const after = await cluster.node.readyPods("istio-system", replicas, { count: 2 });
    expect(after.map(logsOf).join("")).not.toContain("a new root certificate was made");
    await eventually("objects are judged again", () =>
      cluster.client.apply(BAD_ROUTE).then(
        () => false,
        (error) => String(error).includes("cannot be combined with redirect"),
      ),
    );
  });
});
