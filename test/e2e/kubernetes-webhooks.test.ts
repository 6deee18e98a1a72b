import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type Cluster, clusterImpossible, type KubeObject, startCluster } from "../cluster/start-cluster.ts";
import { addNamespaces, installCrds } from "../support/cluster-objects.ts";
import { type Istiod, startIstiod } from "../support/istiod.ts";
import { freePort } from "../support/ports.ts";
import { eventually } from "../support/wait.ts";

const reason = clusterImpossible();
if (reason !== undefined) console.warn(`skipped: ${reason}`);

interface Webhook {
  readonly name: string;
  readonly failurePolicy: string;
  readonly clientConfig: { readonly caBundle?: string; readonly url?: string };
}
const webhooksOf = (object: KubeObject | undefined): readonly Webhook[] => (object?.webhooks ?? []) as readonly Webhook[];

const pod = (name: string, namespace: string, extra = ""): string => `
apiVersion: v1
kind: Pod
metadata: {name: ${name}, namespace: ${namespace}${extra}}
spec: {containers: [{name: web, image: web:1, readinessProbe: {httpGet: {port: 8080}}}]}
`;

const route = (host: string, port: number): string => `
apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: {name: web, namespace: shop}
spec: {hosts: [web], http: [{route: [{destination: {host: "${host}", port: {number: ${port}}}}]}]}
`;

describe.skipIf(reason !== undefined)("webhooks that a real API server calls", () => {
  let cluster: Cluster;
  beforeAll(async () => {
    cluster = await startCluster({ controllerManager: false });
    await addNamespaces(cluster, "shop", "plain", "istio-system");
    await installCrds(cluster);
    await cluster.client.patch("Namespace", "shop", { body: { metadata: { labels: { "istio-injection": "enabled" } } } });
    for (const namespace of ["shop", "plain"])
      await cluster.client.apply(`apiVersion: v1\nkind: ServiceAccount\nmetadata: {name: default, namespace: ${namespace}}`);
  });
  afterAll(() => cluster?.stop());

  async function start(env: Readonly<Record<string, string>> = {}): Promise<Istiod> {
    const port = await freePort();
    return startIstiod({
      files: { "mesh.yaml": "clusterWrites: true\n" },
      env: {
        KUBECONFIG: cluster.kubeconfig,
        POD_NAMESPACE: "istio-system",
        HTTPS_ADDR: `127.0.0.1:${port}`,
        ISTIO_WEBHOOK_URL: `https://localhost:${port}`,
        ...env,
      },
    });
  }

  const injected = async (name: string): Promise<readonly string[]> => {
    const found = await cluster.client.get("Pod", name);
    const spec = found?.spec as { readonly initContainers?: readonly { readonly name: string }[] } | undefined;
    return (spec?.initContainers ?? []).map((container) => container.name);
  };

  it("are registered by istiod, fail closed once reached, inject, judge, and leave those of others alone", async () => {
    await cluster.client.apply(`
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingWebhookConfiguration
metadata: {name: istio-sidecar-injector-stable, labels: {istio.io/rev: stable}}
webhooks:
- name: rev.namespace.sidecar-injector.istio.io
  clientConfig: {url: "https://elsewhere.example:15017/inject"}
  namespaceSelector: {matchLabels: {istio.io/rev: stable}}
  rules: [{operations: [CREATE], apiGroups: [""], apiVersions: [v1], resources: [pods]}]
  failurePolicy: Ignore
  sideEffects: None
  admissionReviewVersions: [v1]
`);
    const istiod = await start();
    await eventually("both configurations refuse in our absence", async () => {
      const all = [
        ...webhooksOf(await cluster.client.get("MutatingWebhookConfiguration", "istio-sidecar-injector")),
        ...webhooksOf(await cluster.client.get("ValidatingWebhookConfiguration", "istio-validator-istio-system")),
      ];
      return all.length === 8 && all.every(({ name, failurePolicy }) => failurePolicy === (name.startsWith("own.") ? "Ignore" : "Fail"));
    });
    const [theirs] = webhooksOf(await cluster.client.get("MutatingWebhookConfiguration", "istio-sidecar-injector-stable"));
    expect([theirs?.failurePolicy, theirs?.clientConfig.caBundle]).toEqual(["Ignore", undefined]);

    await cluster.client.apply(pod("web", "shop"));
    expect(await injected("shop/web")).toEqual(["istio-init", "istio-proxy"]);
    await cluster.client.apply(pod("web", "plain"));
    expect(await injected("plain/web")).toEqual([]);
    await cluster.client.apply(pod("asked", "plain", ', labels: {sidecar.istio.io/inject: "true"}'));
    expect(await injected("plain/asked")).toEqual(["istio-init", "istio-proxy"]);
    await expect(cluster.client.apply(pod("bad", "shop", ", annotations: {sidecar.istio.io/interceptionMode: UP}"))).rejects.toThrow(
      /cannot be injected: annotation sidecar.istio.io\/interceptionMode: must be REDIRECT, TPROXY or NONE/,
    );

    await cluster.client.apply(route("web", 80));
    await expect(cluster.client.apply(route("web", 70_000))).rejects.toThrow(/spec\.http\[0\]\.route\[0\]\.destination\.port.*70000/);
    await expect(cluster.client.apply(route("*", 80))).rejects.toThrow(/denied the request: configuration is invalid: spec\.http\[0\]/);
    // Twice for each pod: the API server asks again after its own plugins have changed what we gave it.
    expect(await istiod.metric("sidecar_injection_success_total")).toBe(4);
    expect(await istiod.metric("galley_validation_failed", 'resource="VirtualService"')).toBe(2);
  });

  it("of a revision are called for its namespaces only, and get their roots back where somebody changed them", async () => {
    await cluster.client.patch("Namespace", "plain", { body: { metadata: { labels: { "istio.io/rev": "canary" } } } });
    const values = JSON.stringify({ values: "global: {hub: example.com/canary}" });
    await cluster.client.apply(
      `{apiVersion: v1, kind: ConfigMap, metadata: {name: istio-sidecar-injector-canary, namespace: istio-system}, data: ${values}}`,
    );
    const istiod = await start({ REVISION: "canary" });
    await eventually("the canary is reached", async () =>
      webhooksOf(await cluster.client.get("MutatingWebhookConfiguration", "istio-sidecar-injector-canary")).some(
        ({ failurePolicy }) => failurePolicy === "Fail",
      ),
    );
    await cluster.client.apply(pod("canary", "plain"));
    const found = await cluster.client.get("Pod", "plain/canary");
    expect(found?.metadata.annotations?.["istio.io/rev"]).toBe("canary");
    expect(JSON.stringify(found?.spec)).toContain("istiod-canary.istio-system.svc:15012");
    expect(JSON.stringify(found?.spec)).toContain("example.com/canary/proxyv2:latest");
    expect(await istiod.metric("sidecar_injection_requests_total")).toBe(2);
    const name = "istio-sidecar-injector-canary";
    const bundle = async (): Promise<string | undefined> =>
      webhooksOf(await cluster.client.get("MutatingWebhookConfiguration", name))[0]?.clientConfig.caBundle;
    const good = await bundle();
    const changed = await cluster.client.patch("MutatingWebhookConfiguration", name, {
      type: "json",
      body: [{ op: "remove", path: "/webhooks/0/clientConfig/caBundle" }],
    });
    expect(webhooksOf(changed)[0]?.clientConfig.caBundle).toBeUndefined();
    await eventually("the roots are back", async () => (await bundle()) === good);
    await eventually("it is counted", async () => (await istiod.metric("webhook_patch_attempts_total", `name="${name}"`)) >= 2);
  });
});
