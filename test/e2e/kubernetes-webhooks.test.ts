import { createServer } from "node:https";
import type { AddressInfo } from "node:net";
import { json } from "node:stream/consumers";
import { dump } from "js-yaml";
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from "vitest";
import { istioctl } from "../cli/cli-host.ts";
import { type Cluster, clusterImpossible, type KubeObject, startCluster } from "../cluster/start-cluster.ts";
import { createCertificateIssuer } from "../support/certificates.ts";
import { addNamespaces, installCrds } from "../support/cluster-objects.ts";
import { type Istiod, startIstiod } from "../support/istiod.ts";
import { freePort } from "../support/ports.ts";
import { startRelay } from "../support/relay.ts";
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

  async function start(env: Readonly<Record<string, string>> = {}, port?: number): Promise<Istiod> {
    port ??= await freePort();
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

  /** Takes away what control planes of earlier tests left: what leads to them, and what others would have to wait for. */
  const forget = async (): Promise<void> => {
    for (const kind of ["MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"])
      for (const { metadata } of await cluster.client.list(kind)) await cluster.client.delete(kind, metadata.name);
    for (const { metadata } of await cluster.client.list("Lease", { namespace: "istio-system" }))
      await cluster.client.delete("Lease", `istio-system/${metadata.name}`);
  };
  const refuses = async (kind: string, name: string): Promise<boolean> =>
    webhooksOf(await cluster.client.get(kind, name)).some(({ failurePolicy }) => failurePolicy === "Fail");

  it("let everything through until the API server has reached them once", async () => {
    await forget();
    const front = await startRelay({ to: 1 });
    const port = await freePort();
    await start({ ISTIO_WEBHOOK_URL: `https://localhost:${front.port}` }, port);
    const registered = [
      ["MutatingWebhookConfiguration", "istio-sidecar-injector"],
      ["ValidatingWebhookConfiguration", "istio-validator-istio-system"],
    ] as const;
    for (const [kind, name] of registered) await eventually(`${name} is there`, () => cluster.client.get(kind, name));
    const bad = route("*", 80).replace("name: web", "name: too-early");
    await cluster.client.apply(bad);
    await cluster.client.apply(pod("too-early", "shop"));
    expect(await injected("shop/too-early")).toEqual([]);
    for (const [kind, name] of registered) expect(await refuses(kind, name)).toBe(false);
    await cluster.client.delete("VirtualService", "shop/too-early");

    front.pointAt(port);
    for (const [kind, name] of registered) await eventually(`${name} refuses`, () => refuses(kind, name));
    await expect(cluster.client.apply(bad)).rejects.toThrow(/denied the request: configuration is invalid/);
    front.pointAt(1);
    // The API server hears of its own objects as any other watcher does: a pod may be let through before it knows that it must not.
    let pods = 0;
    await eventually("pods are refused", () => {
      pods += 1;
      return cluster.client.apply(pod(`too-late-${pods}`, "shop")).then(
        () => false,
        (error) => /failed calling webhook "namespace.sidecar-injector/.test(String(error)),
      );
    });
  });

  it("of a tag follow it to another revision and back", async () => {
    await forget();
    const ports = { default: await freePort(), canary: await freePort() };
    await start({}, ports.default);
    await start({ REVISION: "canary" }, ports.canary);
    await addNamespaces(cluster, "tagged");
    await cluster.client.patch("Namespace", "tagged", { body: { metadata: { labels: { "istio.io/rev": "prod" } } } });
    let pods = 0;
    const tag = async (...words: readonly string[]): Promise<string> => {
      const { status, out, err } = await istioctl(["tag", ...words], { env: { KUBECONFIG: cluster.kubeconfig } });
      expect([status, err]).toEqual([0, ""]);
      return out;
    };
    for (const name of ["istio-sidecar-injector", "istio-sidecar-injector-canary"])
      await eventually(`${name} is there`, () => cluster.client.get("MutatingWebhookConfiguration", name));
    /** Points the tag to a revision; resolves when that one injects. */
    const pointTo = async (revision: keyof typeof ports): Promise<void> => {
      await tag("set", "prod", "--revision", revision, "--overwrite");
      await eventually("the tag carries the roots, and refuses", async () => {
        const all = webhooksOf(await cluster.client.get("MutatingWebhookConfiguration", "istio-revision-tag-prod"));
        return all.length > 0 && all.every(({ clientConfig, failurePolicy }) => clientConfig.caBundle && failurePolicy === "Fail");
      });
      // The API server hears of its own objects as any other watcher does: it may go to the other one for a moment.
      await eventually(`${revision} injects`, async () => {
        pods += 1;
        await cluster.client.apply(pod(`web-${pods}`, "tagged"));
        return (await cluster.client.get("Pod", `tagged/web-${pods}`))?.metadata.annotations?.["istio.io/rev"] === revision;
      });
    };
    for (const revision of ["canary", "default", "canary"] as const) await pointTo(revision);
    expect(await tag("list")).toMatch(/^prod +canary +tagged$/m);
    await tag("remove", "prod", "-y");
    expect(await cluster.client.get("MutatingWebhookConfiguration", "istio-revision-tag-prod")).toBeUndefined();
  });

  it("use templates of the ConfigMap as it is now, and the last good one where it is wrong", async () => {
    await forget();
    const configure = (template: string) =>
      cluster.client.apply(
        dump({
          apiVersion: "v1",
          kind: "ConfigMap",
          metadata: { name: "istio-sidecar-injector", namespace: "istio-system" },
          data: { config: dump({ templates: { own: template } }) },
        }),
      );
    const labels = (text: string): string => `metadata: {labels: {told: "${text}-{{ .ObjectMeta.Name }}"}}`;
    await configure(labels("first"));
    const istiod = await start();
    await eventually("it is reached", () => refuses("MutatingWebhookConfiguration", "istio-sidecar-injector"));
    const told = async (name: string): Promise<string | undefined> => {
      await cluster.client.apply(pod(name, "shop", ", annotations: {inject.istio.io/templates: own}"));
      expect(await injected(`shop/${name}`)).toEqual([]);
      return (await cluster.client.get("Pod", `shop/${name}`))?.metadata.labels?.told;
    };
    expect(await told("templated-1")).toBe("first-templated-1");
    await configure(labels("second"));
    let count = 1;
    await eventually("the change is in force", async () => {
      count += 1;
      return (await told(`templated-${count}`)) === `second-templated-${count}`;
    });
    await configure("{{ if }}");
    await eventually("the fault is told", () => /template "own": line 1/.test(istiod.log()));
    expect(await told("templated-last")).toBe("second-templated-last");
    await cluster.client.apply(pod("both", "shop", ', annotations: {inject.istio.io/templates: "sidecar,own"}'));
    expect(await injected("shop/both")).toEqual(["istio-init", "istio-proxy"]);
    await expect(cluster.client.apply(pod("none", "shop", ", annotations: {inject.istio.io/templates: nope}"))).rejects.toThrow(
      /there is no template "nope"; there are sidecar, gateway, .*own/,
    );
    await cluster.client.delete("ConfigMap", "istio-system/istio-sidecar-injector");
  });

  it("are called again after others have changed a pod, and make theirs of that, too", async () => {
    await forget();
    await startRival(cluster);
    await start();
    await eventually("it is reached", () => refuses("MutatingWebhookConfiguration", "istio-sidecar-injector"));
    await cluster.client.apply(pod("shared", "shop"));
    const spec = (await cluster.client.get("Pod", "shop/shared"))?.spec as PodSpec | undefined;
    expect(spec?.initContainers.map(({ name }) => name)).toEqual(["istio-init", "istio-proxy"]);
    expect(spec?.containers.map(({ name, readinessProbe }) => [name, readinessProbe?.httpGet])).toMatchObject([
      ["web", { port: 15_020, path: "/app-health/web/readyz" }],
      ["rival", { port: 15_020, path: "/app-health/rival/readyz" }],
    ]);
    expect(spec?.initContainers.find(({ name }) => name === "istio-proxy")?.env).toContainEqual({
      name: "ISTIO_META_APP_CONTAINERS",
      value: "web,rival",
    });
  });
});

interface PodSpec {
  readonly initContainers: readonly Container[];
  readonly containers: readonly Container[];
}

interface Container {
  readonly name: string;
  readonly env?: readonly object[];
  readonly readinessProbe?: { readonly httpGet: object };
}

/** A webhook of somebody else that is called after ours and adds a container to every pod. */
async function startRival(cluster: Cluster): Promise<void> {
  const issuer = await createCertificateIssuer("rival");
  const add = [
    { op: "add", path: "/spec/containers/-", value: { name: "rival", image: "r", readinessProbe: { httpGet: { port: 81, path: "/r" } } } },
  ];
  const server = createServer(await issuer.issue("DNS:localhost"), async (request, response) => {
    const { apiVersion, kind, request: asked } = (await json(request)) as Review;
    const isThere = asked.object.spec.containers.some(({ name }) => name === "rival");
    const patch = { patchType: "JSONPatch", patch: Buffer.from(JSON.stringify(add)).toString("base64") };
    response.setHeader("content-type", "application/json");
    response.end(JSON.stringify({ apiVersion, kind, response: { uid: asked.uid, allowed: true, ...(!isThere && patch) } }));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  onTestFinished(() => {
    server.close();
    server.closeAllConnections();
  });
  const { port } = server.address() as AddressInfo;
  await cluster.client.apply(`
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingWebhookConfiguration
metadata: {name: zz-rival}
webhooks:
- name: rival.example.com
  clientConfig: {url: "https://localhost:${port}/", caBundle: ${Buffer.from(issuer.cert).toString("base64")}}
  rules: [{operations: [CREATE], apiGroups: [""], apiVersions: [v1], resources: [pods]}]
  sideEffects: None
  admissionReviewVersions: [v1]
`);
}

interface Review {
  readonly apiVersion: string;
  readonly kind: string;
  readonly request: {
    readonly uid: string;
    readonly object: { readonly spec: { readonly containers: readonly { readonly name: string }[] } };
  };
}
