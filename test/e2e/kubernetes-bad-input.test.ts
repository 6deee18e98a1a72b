import { existsSync } from "node:fs";
import { join } from "node:path";
import { dump } from "js-yaml";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type Cluster, clusterImpossible, startCluster } from "../cluster/start-cluster.ts";
import { watchEndpoints } from "../support/assignments.ts";
import { tempDir } from "../support/cleanup.ts";
import { addNamespaces, installCrds, serviceYaml, sliceYaml } from "../support/cluster-objects.ts";
import { type Istiod, startIstiod } from "../support/istiod.ts";
import { startProxy } from "../support/proxy.ts";
import { eventually } from "../support/wait.ts";

/*
 * What an API server lets through, or passes on from others, though it makes no sense. One real Envoy listens all the while. AdmissionReviews that are too
 * large or too deep are in src/webhooks/webhook-server.test.ts.
 */

const reason = clusterImpossible();
if (reason !== undefined) console.warn(`skipped: ${reason}`);

/** Nearly as much as an API server takes. */
const LARGE = "x".repeat(250_000);

const externalName = (name: string, target: string): string => `
---
apiVersion: v1
kind: Service
metadata: {name: ${name}, namespace: shop}
spec: {type: ExternalName, externalName: ${target}, ports: [{name: http, port: 80}]}
`;

const large = (name: string, text = LARGE): string => `
---
${dump({
  apiVersion: "v1",
  kind: "Service",
  metadata: { name, namespace: "shop", annotations: { "example.com/large": text } },
  spec: { ports: [{ name: "http", port: 80 }] },
})}
---
${dump({
  apiVersion: "networking.istio.io/v1",
  kind: "VirtualService",
  metadata: { name, namespace: "shop", annotations: { "example.com/large": text } },
  spec: { hosts: [name], http: [{ route: [{ destination: { host: name } }], headers: { request: { set: { "x-seen": name } } } }] },
})}`;

/** A pod that was just made: nobody has given it an address. */
const POD_WITHOUT_ADDRESS = `
---
apiVersion: v1
kind: Pod
metadata: {name: unborn, namespace: shop, labels: {app: picked}}
spec: {containers: [{name: app, image: app}]}
---
apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: {name: picked, namespace: shop}
spec:
  hosts: [picked.example.com]
  ports: [{number: 80, name: http, protocol: HTTP}]
  resolution: STATIC
  location: MESH_INTERNAL
  workloadSelector: {labels: {app: picked}}
`;

describe.skipIf(reason !== undefined)("what makes no sense in a cluster", () => {
  let cluster: Cluster;
  beforeAll(async () => {
    cluster = await startCluster({ controllerManager: false });
    await addNamespaces(cluster, "shop", "istio-system");
    await installCrds(cluster);
    await cluster.client.apply(serviceYaml("good") + sliceYaml("good", ["10.1.0.1"]));
  });
  afterAll(() => cluster?.stop());

  const start = (files: Readonly<Record<string, string>> = {}): Promise<Istiod> =>
    startIstiod({ files, env: { KUBECONFIG: cluster.kubeconfig, POD_NAMESPACE: "istio-system" } });
  const problems = async (istiod: Istiod): Promise<string> => (await istiod.debug("/debug/problems")).text();

  /** Something else still changes, reaches proxies, and no proxy has refused anything. */
  let last = 1;
  async function expectUndisturbed(istiod: Istiod): Promise<void> {
    const told = watchEndpoints(istiod.grpcPort, "outbound|80||good.shop.svc.cluster.local");
    await eventually("what is good is served", () => (told().at(-1)?.length ?? 0) > 0);
    last += 1;
    await cluster.client.apply(sliceYaml("good", [`10.1.0.${last}`]));
    await eventually("what is good goes on", () => told().at(-1)?.join() === `10.1.0.${last}:8080`);
    expect((await fetch(`http://127.0.0.1:${istiod.httpPort}/ready`)).status).toBe(200);
    expect(await istiod.metric("pilot_total_xds_rejects")).toBe(0);
  }

  it("disturbs nothing else: names in circles, pods without an address, a quarter of a megabyte of annotations, an address twice", async () => {
    const good = (await cluster.client.get("Service", "shop/good"))?.spec as { readonly clusterIP: string };
    const twin = `
apiVersion: v1
kind: Service
metadata: {name: twin, namespace: shop}
spec: {clusterIP: ${good.clusterIP}, ports: [{name: http, port: 80}]}
`;
    const istiod = await start({ "conf/twin.yaml": twin });
    await startProxy({ xdsPort: istiod.grpcPort, name: "client", address: "127.0.0.1" });
    const circle = externalName("ring", "ring.shop.svc.cluster.local") + externalName("left", "right.shop.svc.cluster.local");
    await cluster.client.apply(circle + externalName("right", "left.shop.svc.cluster.local") + large("large") + POD_WITHOUT_ADDRESS);
    await eventually("all of it was read", async () => {
      const registry = await (await istiod.debug("/debug/registryz")).text();
      return ["ring.shop", "left.shop", "right.shop", "large.shop", "picked.example.com", "twin.shop"].every((host) =>
        registry.includes(host),
      );
    });
    const picked = watchEndpoints(istiod.grpcPort, "outbound|80||picked.example.com");
    await eventually("a pod without an address is no endpoint", () => picked().at(-1)?.length === 0);
    await eventually("circles and the address are told", async () => {
      const told = JSON.parse(await problems(istiod)) as readonly { readonly code: string; readonly path: string }[];
      expect(told.map(({ code, path }) => `${code} ${path}`).sort()).toEqual([
        "conflict.address spec.clusterIP",
        ...Array(3).fill("reference.host spec.externalName"),
      ]);
      return true;
    });
    const held = (await (await istiod.debug("/debug/configz")).text()).length;
    expect(held, "what nobody reads of a Service is not kept").toBeLessThan(2 * LARGE.length);
    await expectUndisturbed(istiod);
  });

  it("is a megabyte of annotations in a file, which is read like any other and goes to no proxy", async () => {
    const istiod = await start({ "conf/filed.yaml": large("filed", "x".repeat(1_000_000)) });
    const proxy = await startProxy({ xdsPort: istiod.grpcPort, name: "client", address: "127.0.0.1" });
    const config = await eventually("what it says is in force", async () => {
      const page = await proxy.admin("/config_dump");
      return /"key": "x-seen",\s*"value": "filed"/.test(page) && page;
    });
    expect(config).not.toContain("xxxxxxxx");
    await expectUndisturbed(istiod);
  });

  it("is told where it comes from a newer schema, and the rest of the object counts", async () => {
    const crd = "virtualservices.networking.istio.io";
    const found = (await cluster.client.get("CustomResourceDefinition", crd))?.spec as { readonly versions: readonly object[] };
    const patches = found.versions.flatMap((_, index) => [
      {
        op: "replace",
        path: `/spec/versions/${index}/schema`,
        value: { openAPIV3Schema: { type: "object", "x-kubernetes-preserve-unknown-fields": true } },
      },
    ]);
    await cluster.client.patch("CustomResourceDefinition", crd, { type: "json", body: patches });
    const istiod = await start();
    const proxy = await startProxy({ xdsPort: istiod.grpcPort, name: "client", address: "127.0.0.1" });
    await eventually("the newer schema is in force", async () => {
      await cluster.client.apply(`
apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: {name: newer, namespace: shop}
spec: {hosts: [good], quantumRouting: {entangled: true}, http: [{route: [{destination: {host: good}}], retries: {attempts: 7, telepathic: true}}]}
`);
      const kept = await cluster.client.get("VirtualService", "shop/newer");
      return JSON.stringify(kept?.spec).includes("quantumRouting");
    });
    await eventually("the field is named", async () => (await problems(istiod)).includes("quantumRouting"));
    await eventually("so is the other", async () => (await problems(istiod)).includes("telepathic"));
    await eventually("the rest is in force", async () => /"num_retries": 7\b/.test(await proxy.admin("/config_dump")));
    await expectUndisturbed(istiod);
  });

  it("runs no program and reads no file that the kubeconfig of another cluster names, and says so of each", async () => {
    const trap = join(await tempDir(), "trap");
    const exec = { apiVersion: "client.authentication.k8s.io/v1", command: "touch", args: [trap], interactiveMode: "Never" };
    const hostile = (server: string, user: object = { exec }): string =>
      dump({
        "current-context": "it",
        clusters: [{ name: "it", cluster: { server } }],
        users: [{ name: "it", user }],
        contexts: [{ name: "it", context: { cluster: "it", user: "it" } }],
      });
    const secret = { name: "remote-hostile", namespace: "istio-system", labels: { "istio/multiCluster": "true" } };
    await cluster.client.apply(
      dump({
        apiVersion: "v1",
        kind: "Secret",
        metadata: secret,
        stringData: {
          hostile: hostile(cluster.url),
          files: hostile(cluster.url, { tokenFile: "/etc/passwd" }),
          garbage: "{{{",
          deep: `a: ${"[".repeat(5_000)}`,
          "Odd_name.1": hostile("file:///etc/passwd"),
        },
      }),
    );
    const istiod = await start();
    for (const [name, why] of Object.entries({
      hostile: "names a program to run",
      files: "may not name files",
      garbage: "cannot be read",
      deep: "nesting exceeded",
      "Odd_name.1": "no usable server address",
    }))
      await eventually(`${name} is told`, () => new RegExp(`is not used.*cluster=${name}\\b.*${why}`).test(istiod.log()));
    await expectUndisturbed(istiod);
    expect(existsSync(trap)).toBe(false);
    await cluster.client.delete("Secret", "istio-system/remote-hostile");
  });
});
