import { X509Certificate } from "node:crypto";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type Cluster, clusterImpossible, startCluster } from "../cluster/start-cluster.ts";
import { addNamespaces, addPod } from "../support/cluster-objects.ts";
import { askCertificate } from "../support/identity.ts";
import { type Istiod, startIstiod } from "../support/istiod.ts";
import { eventually } from "../support/wait.ts";

const reason = clusterImpossible();
if (reason !== undefined) console.warn(`skipped: ${reason}`);

const AUDIENCE = ["istio-ca"];

describe.skipIf(reason !== undefined)("tokens of a cluster", () => {
  let cluster: Cluster;
  beforeAll(async () => {
    cluster = await startCluster({ controllerManager: false });
    await addNamespaces(cluster, "shop", "istio-system");
    await addPod(cluster, { name: "cart", address: "10.1.0.1" });
    await cluster.client.apply("{apiVersion: v1, kind: ServiceAccount, metadata: {name: vm, namespace: shop}}");
  });
  afterAll(() => cluster?.stop());

  const boundTo = async (name: string): Promise<{ readonly name: string; readonly uid: string }> => ({
    name,
    uid: String((await cluster.client.get("Pod", `shop/${name}`))?.metadata.uid),
  });
  const whoIs = async (istiod: Istiod, token: string): Promise<string | undefined> =>
    new X509Certificate((await askCertificate(istiod, { token })).chain[0] ?? "").subjectAltName;

  const start = async (): Promise<Istiod> => {
    const istiod = await startIstiod({ env: { KUBECONFIG: cluster.kubeconfig } });
    await eventually("all that tokens are judged by is known", async () =>
      (await (await fetch(`http://127.0.0.1:${istiod.httpPort}/ready?verbose`)).text()).includes("tokens of running pods are judged here"),
    );
    return istiod;
  };

  it("stand for their service accounts, bound to a pod or not", async () => {
    const istiod = await start();
    const bound = await cluster.createServiceAccountToken("shop", "default", { audiences: AUDIENCE, boundPod: await boundTo("cart") });
    expect(await whoIs(istiod, bound)).toBe("URI:spiffe://cluster.local/ns/shop/sa/default");
    const free = await cluster.createServiceAccountToken("shop", "vm", { audiences: AUDIENCE });
    expect(await whoIs(istiod, free)).toBe("URI:spiffe://cluster.local/ns/shop/sa/vm");
  });

  it("are refused for another audience, with another signature, and when their pod is gone", async () => {
    const istiod = await start();
    const elsewhere = await cluster.createServiceAccountToken("shop", "default", { audiences: ["elsewhere"] });
    await expect(whoIs(istiod, elsewhere)).rejects.toThrow(/another audience/);
    const good = await cluster.createServiceAccountToken("shop", "vm", { audiences: AUDIENCE });
    const [head, , signature] = good.split(".");
    const claims = JSON.parse(Buffer.from(good.split(".")[1] ?? "", "base64url").toString()) as Record<string, unknown>;
    const other = Buffer.from(JSON.stringify({ ...claims, sub: "system:serviceaccount:istio-system:istiod" })).toString("base64url");
    await expect(whoIs(istiod, `${head}.${other}.${signature}`)).rejects.toThrow(/not accept the token/);
    await addPod(cluster, { name: "short", address: "10.1.0.2" });
    await eventually("the pod is seen", async () => (await (await istiod.debug("/debug/configz")).text()).includes('"short"'));
    const bound = await cluster.createServiceAccountToken("shop", "default", { audiences: AUDIENCE, boundPod: await boundTo("short") });
    expect(await whoIs(istiod, bound)).toContain("sa/default");
    await cluster.client.delete("Pod", "shop/short", { gracePeriodSeconds: 0 });
    await eventually("the token ends with its pod", async () =>
      whoIs(istiod, bound).then(
        () => false,
        (error) => String(error).includes("not accept the token"),
      ),
    );
  });

  it("of pods that run are known while the API server is away; others are not", async () => {
    const istiod = await start();
    const bound = await cluster.createServiceAccountToken("shop", "default", { audiences: AUDIENCE, boundPod: await boundTo("cart") });
    const free = await cluster.createServiceAccountToken("shop", "vm", { audiences: AUDIENCE });
    expect(await whoIs(istiod, bound)).toContain("sa/default");
    const again = await cluster.createServiceAccountToken("shop", "default", { audiences: AUDIENCE, boundPod: await boundTo("cart") });
    await cluster.killApiServer();
    expect(await whoIs(istiod, again)).toContain("sa/default");
    await expect(whoIs(istiod, free)).rejects.toThrow(/API server cannot be asked/);
    await cluster.restartApiServer();
  });
});
