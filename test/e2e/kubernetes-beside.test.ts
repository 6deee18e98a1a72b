import { afterAll, assert, beforeAll, describe, expect, it, onTestFinished } from "vitest";
import { systemClock } from "../../src/base/clock.ts";
import type { CaTexts } from "../../src/ca/ca-material.ts";
import { makeRoot } from "../../src/ca/make-root.ts";
import { type Cluster, clusterImpossible, type KubeObject, startCluster } from "../cluster/start-cluster.ts";
import { addNamespaces, installCrds } from "../support/cluster-objects.ts";
import { type Istiod, startIstiod } from "../support/istiod.ts";
import { freePort } from "../support/ports.ts";
import { eventually } from "../support/wait.ts";

/*
 * Two control planes in one cluster: ours, of a revision, and objects as Istio's own keeps them for the default revision. What belongs to the other is left
 * alone, whatever it says. With Istio's programs themselves this was tried by hand; what is needed for it is held here.
 */

const reason = clusterImpossible();
if (reason !== undefined) console.warn(`skipped: ${reason}`);

const ROOTS = "istio-ca-root-cert";

const bringCa = async (): Promise<CaTexts> =>
  (await makeRoot({ trustDomain: "cluster.local", now: systemClock.now(), ttlMs: 86_400_000 })).reveal();

const webhook = (kind: "Mutating" | "Validating", name: string): string => `
---
apiVersion: admissionregistration.k8s.io/v1
kind: ${kind}WebhookConfiguration
metadata: {name: ${name}, labels: {istio.io/rev: default}}
webhooks:
- name: ${kind === "Mutating" ? "rev.namespace.sidecar-injector.istio.io" : "rev.validation.istio.io"}
  clientConfig: {service: {name: istiod, namespace: istio-system, path: /theirs}}
  rules: [{operations: [CREATE], apiGroups: [networking.istio.io], apiVersions: ["*"], resources: [sidecars]}]
  objectSelector: {matchLabels: {istio.io/rev: default}}
  failurePolicy: Ignore
  sideEffects: None
  admissionReviewVersions: [v1]
`;

const configMap = (name: string, extra = ""): string => `
---
{apiVersion: v1, kind: ConfigMap, metadata: {name: ${name}, namespace: istio-system${extra}}, data: {mesh: "trustDomain: theirs.example"}}
`;

const lease = (name: string): string => `
---
{apiVersion: coordination.k8s.io/v1, kind: Lease, metadata: {name: ${name}, namespace: istio-system}, spec: {holderIdentity: theirs, leaseDurationSeconds: 30}}
`;

/** Where leaders of Istio stand: most in annotations of ConfigMaps, newer ones in Leases of their revision. */
const LOCK = `, annotations: {control-plane.alpha.kubernetes.io/leader: '{"holderIdentity":"theirs","holderKey":"default","leaseDurationSeconds":30}'}`;
const LOCKS = [
  "istio-leader",
  "istio-namespace-controller-election",
  "istio-analyze-leader",
  "istio-ip-autoallocate",
  "istio-node-untaint",
];
const LEASES = ["istio-gateway-deployment-default", "istio-gateway-status-leader-default", "istio-gateway-inferencepool-default"];

const ROUTE = `
---
apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: {name: theirs, namespace: shop, labels: {istio.io/rev: default}}
spec: {hosts: [theirs.example.com], http: [{route: [{destination: {host: theirs.example.com}}]}]}
`;

const THEIRS = [
  ...["istio-sidecar-injector", "istio-revision-tag-default"].map((name) => webhook("Mutating", name)),
  ...["istio-validator-istio-system", "istiod-default-validator"].map((name) => webhook("Validating", name)),
  ...["istio", "istio-sidecar-injector"].map((name) => configMap(name)),
  ...LOCKS.map((name) => configMap(name, LOCK)),
  ...LEASES.map(lease),
  ROUTE,
].join("");

const KINDS = ["MutatingWebhookConfiguration", "ValidatingWebhookConfiguration", "ConfigMap", "Lease", "Secret", "VirtualService"];

describe.skipIf(reason !== undefined)("beside a control plane of another revision", () => {
  let cluster: Cluster;
  let ca: CaTexts;
  beforeAll(async () => {
    cluster = await startCluster({ controllerManager: false });
    await addNamespaces(cluster, "shop", "istio-system");
    await installCrds(cluster);
    ca = await bringCa();
    const cacerts = { apiVersion: "v1", kind: "Secret", metadata: { name: "cacerts", namespace: "istio-system" }, stringData: ca };
    await cluster.client.apply(`${THEIRS}---\n${JSON.stringify(cacerts)}`);
    await cluster.client.patch("VirtualService", "shop/theirs", { subresource: "status", body: { status: { observedGeneration: 1 } } });
  });
  afterAll(() => cluster?.stop());

  const start = async (mesh = ""): Promise<Istiod> => {
    const port = await freePort();
    return startIstiod({
      files: { "mesh.yaml": `clusterWrites: true\n${mesh}` },
      env: {
        KUBECONFIG: cluster.kubeconfig,
        POD_NAMESPACE: "istio-system",
        REVISION: "ours",
        HTTPS_ADDR: `127.0.0.1:${port}`,
        ISTIO_WEBHOOK_URL: `https://localhost:${port}`,
      },
    });
  };

  const nameOf = ({ kind, metadata }: KubeObject): string => `${kind} ${metadata.namespace ?? ""}/${metadata.name}`;
  const managersOf = ({ metadata }: KubeObject): readonly string[] =>
    ((metadata as { readonly managedFields?: readonly { readonly manager: string }[] }).managedFields ?? []).map(({ manager }) => manager);
  const everything = async (): Promise<readonly KubeObject[]> =>
    (await Promise.all(KINDS.map(async (kind) => (await cluster.client.list(kind)).map((object) => ({ ...object, kind }))))).flat();

  it("writes its own objects, and to none of the other's", async () => {
    const before = new Map((await everything()).map((object) => [nameOf(object), object.metadata.resourceVersion]));
    const istiod = await start();
    for (const [kind, name] of [
      ["MutatingWebhookConfiguration", "istio-sidecar-injector-ours"],
      ["ValidatingWebhookConfiguration", "istio-validator-ours-istio-system"],
    ] as const)
      await eventually(`${name} is in force`, async () => JSON.stringify(await cluster.client.get(kind, name)).includes('"Fail"'));
    await eventually("our roots are published", () => cluster.client.get("ConfigMap", `shop/${ROOTS}`));
    const after = await everything();
    const changed = after.filter((object) => before.get(nameOf(object)) !== object.metadata.resourceVersion).map(nameOf);
    expect(changed.filter((name) => before.has(name) && !name.startsWith("Lease kube-system/"))).toEqual([]);
    const written = after.filter(
      (object) => managersOf(object).includes("istiod") && object.metadata.name !== ROOTS && object.kind !== "Lease",
    );
    expect(written.map(nameOf).sort()).toEqual([
      "MutatingWebhookConfiguration /istio-sidecar-injector-ours",
      "ValidatingWebhookConfiguration /istio-validator-ours-istio-system",
    ]);
    expect(after.filter(({ kind }) => kind === "Lease").map(({ metadata }) => metadata.name)).toContain("istiod-webhooks-ours");
    expect(await (await istiod.debug("/debug/mesh")).text(), "their MeshConfig is not ours").not.toContain("theirs.example");
    expect(await (await istiod.debug("/debug/configz")).text(), "nor are their objects").not.toContain("theirs.example.com");
    await istiod.stop();
  });

  it("shares the roots of a common CA in whatever form, and does not fight over those of another", async () => {
    const istiod = await start();
    const held = async (): Promise<string | undefined> =>
      ((await cluster.client.get("ConfigMap", `shop/${ROOTS}`))?.data as Readonly<Record<string, string>> | undefined)?.["root-cert.pem"];
    await eventually("the roots are there", async () => (await held()) === ca["root-cert.pem"]);
    const theirs = (await bringCa())["root-cert.pem"];
    // Istio's own puts its roots back as soon as it sees others.
    const ending = new AbortController();
    onTestFinished(() => ending.abort());
    let corrections = 0;
    const insist = async (): Promise<void> => {
      while (!ending.signal.aborted) {
        if ((await held()) !== theirs) {
          corrections += 1;
          await cluster.client.patch("ConfigMap", `shop/${ROOTS}`, { body: { data: { "root-cert.pem": theirs } } });
        }
        await systemClock.sleep(10);
      }
    };
    const rival = insist();
    await eventually("the other is noticed", () => istiod.log().includes("somebody else keeps other roots in ConfigMap"));
    await eventually("it is written once more", () => corrections > 1);
    await systemClock.sleep(3_000);
    ending.abort();
    await rival;
    expect(corrections, "less and less often").toBeLessThan(8);
    expect(istiod.log().match(/somebody else keeps other roots/g)).toHaveLength(1);
    const root = ca["root-cert.pem"] ?? assert.fail("no root");
    await eventually("who wrote last no longer insists", async () => (await held()) === root);
  });
});
