import { sign, X509Certificate } from "node:crypto";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type Cluster, clusterImpossible, startCluster } from "../cluster/start-cluster.ts";
import { addNamespaces, addPod } from "../support/cluster-objects.ts";
import { type AskOptions, askCertificate, type Signed } from "../support/identity.ts";
import { type Istiod, startIstiod } from "../support/istiod.ts";
import { eventually } from "../support/wait.ts";

const reason = clusterImpossible();
if (reason !== undefined) console.warn(`skipped: ${reason}`);

const AUDIENCE = ["istio-ca"];

const isRefused = (asked: Promise<unknown>): Promise<boolean> =>
  asked.then(
    () => false,
    (error: unknown) => /not accept the token|own identity only/.test(String(error)),
  );

/** A token as the token controller made them: for one account, without an end or an audience, good as long as a Secret holds it. */
async function oldToken({ dir }: Cluster, { uid, secret }: { readonly uid: string; readonly secret: string }): Promise<string> {
  const about = { "service-account.name": "old", "service-account.uid": uid, "secret.name": secret, namespace: "shop" };
  const claims = {
    iss: "kubernetes/serviceaccount",
    sub: "system:serviceaccount:shop:old",
    ...Object.fromEntries(Object.entries(about).map(([name, value]) => [`kubernetes.io/serviceaccount/${name}`, value])),
  };
  const part = (value: object): string => Buffer.from(JSON.stringify(value)).toString("base64url");
  const signed = `${part({ alg: "RS256" })}.${part(claims)}`;
  return `${signed}.${sign("sha256", Buffer.from(signed), await readFile(join(dir, "sa.key"), "utf8")).toString("base64url")}`;
}

const oldTokenSecret = (token: string, uid: string): string => `
apiVersion: v1
kind: Secret
metadata:
  name: old-token
  namespace: shop
  annotations: {kubernetes.io/service-account.name: old, kubernetes.io/service-account.uid: ${uid}}
type: kubernetes.io/service-account-token
stringData: {token: ${token}}
`;

describe.skipIf(reason !== undefined)("tokens of a cluster", () => {
  let cluster: Cluster;
  beforeAll(async () => {
    cluster = await startCluster({ controllerManager: false });
    await addNamespaces(cluster, "shop", "istio-system");
    await addPod(cluster, { name: "cart", address: "10.1.0.1" });
    await cluster.client.apply("{apiVersion: v1, kind: ServiceAccount, metadata: {name: vm, namespace: shop}}");
  });
  afterAll(() => cluster?.stop());

  const uidOf = async (kind: string, key: string): Promise<string> => String((await cluster.client.get(kind, key))?.metadata.uid);
  const boundTo = async (name: string): Promise<{ readonly name: string; readonly uid: string }> => ({
    name,
    uid: await uidOf("Pod", `shop/${name}`),
  });
  const whoIs = async (istiod: Istiod, token: string): Promise<string | undefined> =>
    new X509Certificate((await askCertificate(istiod, { token })).chain[0] ?? "").subjectAltName;

  const start = async (env: Readonly<Record<string, string>> = {}): Promise<Istiod> => {
    const istiod = await startIstiod({ env: { KUBECONFIG: cluster.kubeconfig, ...env } });
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
    await expect(whoIs(istiod, `${head}.${other}.${signature}`)).rejects.toThrow(/not signed by its issuer/);
    await addPod(cluster, { name: "short", address: "10.1.0.2" });
    await eventually("the pod is seen", async () => (await (await istiod.debug("/debug/configz")).text()).includes('"short"'));
    const bound = await cluster.createServiceAccountToken("shop", "default", { audiences: AUDIENCE, boundPod: await boundTo("short") });
    expect(await whoIs(istiod, bound)).toContain("sa/default");
    await cluster.client.delete("Pod", "shop/short", { gracePeriodSeconds: 0 });
    await eventually("the token ends with its pod", () => isRefused(whoIs(istiod, bound)));
  });

  it("of the old kind, bound to nothing, are for the API server to judge: they count as long as their Secret is there", async () => {
    await cluster.client.apply("{apiVersion: v1, kind: ServiceAccount, metadata: {name: old, namespace: shop}}");
    const uid = await uidOf("ServiceAccount", "shop/old");
    const token = await oldToken(cluster, { uid, secret: "old-token" });
    await cluster.client.apply(oldTokenSecret(token, uid));
    const istiod = await start();
    expect(await whoIs(istiod, token)).toBe("URI:spiffe://cluster.local/ns/shop/sa/old");
    await expect(whoIs(istiod, await oldToken(cluster, { uid, secret: "gone" }))).rejects.toThrow(/not accept the token/);
  });

  it("that strangers make up cost the API server little, and nobody else is refused for them", async () => {
    const istiod = await start();
    const part = (value: object): string => Buffer.from(JSON.stringify(value)).toString("base64url");
    const madeUp = (number: number): string => `${part({ alg: "RS256" })}.${part({ iss: "kubernetes/serviceaccount", number })}.AAAA`;
    const page = async (token: string): Promise<number> => {
      const headers = { authorization: `Bearer ${token}` };
      return (await fetch(`http://127.0.0.1:${istiod.httpPort}/debug/syncz`, { headers })).status;
    };
    const answers = await Promise.all(Array.from({ length: 300 }, (_, number) => page(madeUp(number))));
    expect(new Set(answers)).toEqual(new Set([401]));
    const asked = await istiod.metric("istiod_refused_callers", 'service="debug",reason="token signature"');
    expect(asked + (await istiod.metric("istiod_refused_callers", 'service="debug",reason="too many tokens"'))).toBe(300);
    expect(asked).toBeLessThan(300);
    expect(await page(await cluster.createServiceAccountToken("shop", "vm", { audiences: AUDIENCE }))).toBe(200);
  });

  it("of agents of nodes get certificates of workloads beside them, and of no others", async () => {
    for (const account of ["agent", "here", "there"])
      await cluster.client.apply(`{apiVersion: v1, kind: ServiceAccount, metadata: {name: ${account}, namespace: shop}}`);
    await addPod(cluster, { name: "agent", address: "10.1.0.10", node: "one", account: "agent" });
    await addPod(cluster, { name: "here", address: "10.1.0.11", node: "one", account: "here" });
    await addPod(cluster, { name: "there", address: "10.1.0.12", node: "two", account: "there" });
    const istiod = await start({ CA_TRUSTED_NODE_ACCOUNTS: "istio-system/ztunnel, shop/agent" });
    const tokenOf = async (account: string, pod?: string): Promise<string> =>
      cluster.createServiceAccountToken("shop", account, {
        audiences: AUDIENCE,
        ...(pod !== undefined && { boundPod: await boundTo(pod) }),
      });
    const actFor = (credentials: AskOptions, account: string): Promise<Signed> =>
      askCertificate(istiod, { ...credentials, metadata: { ImpersonatedIdentity: `spiffe://cluster.local/ns/${account}` } });
    const agent = { token: await tokenOf("agent", "agent") };
    const signed = await eventually("the pods are seen", () => actFor(agent, "shop/sa/here"));
    expect(new X509Certificate(signed.chain[0] ?? "").subjectAltName).toBe("URI:spiffe://cluster.local/ns/shop/sa/here");
    const refused: readonly [AskOptions, string, RegExp][] = [
      [agent, "shop/sa/there", /no workload of that identity is on the caller's node/],
      [agent, "istio-system/sa/here", /no workload of that identity is on the caller's node/],
      [{ token: await tokenOf("agent") }, "shop/sa/here", /bound to no pod/],
      [{ certificate: await askCertificate(istiod, agent) }, "shop/sa/here", /bound to no pod/],
      [{ token: await tokenOf("here", "here") }, "shop/sa/agent", /not among those that may act for others/],
    ];
    const refusals = (): readonly string[] =>
      istiod
        .log()
        .split("\n")
        .filter((line) => line.includes("of another was refused"));
    for (const [credentials, account, why] of refused) {
      const before = refusals().length;
      await expect(actFor(credentials, account)).rejects.toMatchObject({ code: 7 });
      expect(await eventually("it is logged", () => refusals()[before])).toMatch(why);
    }
    expect(await istiod.metric("citadel_server_authentication_failure_count")).toBeGreaterThanOrEqual(refused.length);
    await cluster.client.delete("Pod", "shop/here", { gracePeriodSeconds: 0 });
    await eventually("what is gone has no agent", () => isRefused(actFor(agent, "shop/sa/here")));
  });

  it("of pods that run are known while the API server is away; others are not", async () => {
    const istiod = await start();
    const bound = await cluster.createServiceAccountToken("shop", "default", { audiences: AUDIENCE, boundPod: await boundTo("cart") });
    const free = await cluster.createServiceAccountToken("shop", "vm", { audiences: AUDIENCE });
    expect(await whoIs(istiod, bound)).toContain("sa/default");
    const again = await cluster.createServiceAccountToken("shop", "default", { audiences: AUDIENCE, boundPod: await boundTo("cart") });
    const uid = await uidOf("ServiceAccount", "shop/vm");
    await cluster.killApiServer();
    expect(await whoIs(istiod, again)).toContain("sa/default");
    for (const token of [free, await oldToken(cluster, { uid, secret: "old-token" })])
      await expect(whoIs(istiod, token)).rejects.toThrow(/API server cannot be asked/);
    await cluster.restartApiServer();
  });
});
