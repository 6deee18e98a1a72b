import { execFile } from "node:child_process";
import { X509Certificate } from "node:crypto";
import { mkdir, readdir, readFile, rm, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { describe, expect, it } from "vitest";
import { type AgentPorts, startAgentProcess, startBundledAgent } from "../support/agent.ts";
import { CART_GROUP, CART_MEMBER, latestMembers, membersIn, watchCarts } from "../support/cart-machines.ts";
import { tempDir } from "../support/cleanup.ts";
import { askCertificate, rootOf } from "../support/identity.ts";
import { type Istiod, startIstiod } from "../support/istiod.ts";
import { freePort } from "../support/ports.ts";
import { startRelay } from "../support/relay.ts";
import { openVmStream } from "../support/vm-agent.ts";
import { eventually } from "../support/wait.ts";

const ISTIOCTL = join(import.meta.dirname, "../../dist/istioctl.mjs");
const run = promisify(execFile);

/** How long a machine stays a member after it was seen last: longer than it takes to look after a restart. */
const GRACE = "20s";

const istioctl = async ({ home, httpPort, securePort }: Istiod, words: readonly string[]): Promise<string> => {
  const env = { ...process.env, ISTIO_HOME: home, HTTP_ADDR: `127.0.0.1:${httpPort}`, SECURE_GRPC_ADDR: `127.0.0.1:${securePort}` };
  return (await run(process.execPath, [ISTIOCTL, "x", "workload", ...words], { env, cwd: home })).stdout.trim();
};
async function put(directory: string, name: string, text: string): Promise<void> {
  await mkdir(directory, { recursive: true });
  await writeFile(join(directory, name), text);
}
const joinToken = (istiod: Istiod, ...words: readonly string[]): Promise<string> =>
  istioctl(istiod, ["token", "-n", "shop", "-s", "cart", ...words]);

interface Entry {
  readonly metadata: { readonly name: string; readonly annotations?: Readonly<Record<string, string>> };
  readonly origin: { readonly source: string; readonly observed?: string };
}
const entriesOf = async (istiod: Istiod): Promise<readonly Entry[]> =>
  (await (await istiod.debug("/debug/configz?type=WorkloadEntry")).json()) as readonly Entry[];

describe("a join token", () => {
  it("gets one machine its first certificate, and no other anything", async () => {
    const istiod = await startIstiod({ files: { "conf/cart.yaml": CART_GROUP } });
    const token = await joinToken(istiod);
    expect(await (await openVmStream(istiod, { token })).first).toBe("served");
    await expect(askCertificate(istiod, { token, csr: "garbage" })).rejects.toMatchObject({ code: 3 });
    const signed = await askCertificate(istiod, { token });
    expect(new X509Certificate(signed.chain[0] ?? "").subjectAltName).toBe("URI:spiffe://cluster.local/ns/shop/sa/cart");

    const refused = { code: 16, details: expect.stringContaining("used before") };
    await expect(askCertificate(istiod, { token })).rejects.toMatchObject(refused);
    expect(await (await openVmStream(istiod, { token })).first).toContain("used before");
    expect(await istiod.metric("istiod_refused_callers", 'reason="token used"')).toBe(2);
    expect((await askCertificate(istiod, { certificate: signed, token })).chain).toHaveLength(1);

    const brief = await joinToken(istiod, "--ttl", "1s");
    await istiod.stop();
    const offline = await joinToken(istiod);
    await istiod.start();
    await expect(askCertificate(istiod, { token })).rejects.toMatchObject(refused);
    await eventually("the brief one ended", () =>
      askCertificate(istiod, { token: brief }).catch((error: Error) => error.message.includes("expired")),
    );
    expect((await askCertificate(istiod, { token: offline })).chain).toHaveLength(1);
    const renewed = await askCertificate(istiod, { certificate: signed });
    expect(await (await openVmStream(istiod, { certificate: renewed })).first).toBe("served");
    expect(istiod.log() + istiod.said()).not.toContain(token);
  });

  it("is issued to those who hold the debug token, as JSON, for what can be an identity", async () => {
    const istiod = await startIstiod();
    await put(join(istiod.home, "etc/certs"), "root-cert.pem", "ROOT OF THE SERVER\n");
    const url = `http://127.0.0.1:${istiod.httpPort}/api/workload-token`;
    const secret = (await readFile(join(istiod.home, "var/lib/istio/debug.token"), "utf8")).trim();
    const post = async (body: object, headers: Readonly<Record<string, string>>): Promise<number> =>
      (await fetch(url, { method: "POST", body: JSON.stringify(body), headers })).status;
    const json = { "content-type": "application/json" };
    const known = { ...json, authorization: `Bearer ${secret}` };
    const cart = { namespace: "shop", serviceAccount: "cart" };
    expect(await post(cart, json)).toBe(401);
    expect(await post(cart, { ...known, authorization: "Bearer x" })).toBe(401);
    expect(await post(cart, { ...known, "content-type": "text/plain" })).toBe(400);
    expect(await post({ namespace: "a/b", serviceAccount: "cart" }, known)).toBe(400);
    expect(await post({ ...cart, ttlSeconds: 1e9 }, known)).toBe(400);
    expect((await istiod.debug("/api/workload-token")).status).toBe(405);
    expect(await post(cart, known)).toBe(200);
    const answer = await fetch(url, { method: "POST", body: JSON.stringify(cart), headers: known });
    const own = await readFile(join(istiod.home, "etc/cacerts/root-cert.pem"), "utf8");
    expect(await answer.json()).toMatchObject({ trustDomain: "cluster.local", roots: `${own}ROOT OF THE SERVER\n` });
    expect((await fetch(url.replace("/api/workload-token", "/debug/syncz"), { method: "POST", headers: known })).status).toBe(405);
  });
});

describe("a machine that names a WorkloadGroup", () => {
  it("is a member of its services while it is connected and well, also over a restart of istiod", async () => {
    const istiod = await startIstiod({ files: { "conf/cart.yaml": CART_GROUP }, env: { PILOT_WORKLOAD_ENTRY_GRACE_PERIOD: GRACE } });
    const certificate = await askCertificate(istiod, { token: await joinToken(istiod) });
    const seen = watchCarts(istiod);
    const probed = { ...CART_MEMBER, PROXY_CONFIG: { readinessProbe: { httpGet: { port: 8080 } } } };
    const vm = await openVmStream(istiod, { certificate, metadata: probed });
    await eventually("its entry is there", async () => (await entriesOf(istiod)).length === 1);
    expect((await entriesOf(istiod))[0]).toMatchObject({
      metadata: { name: "carts-10.9.0.1", annotations: { "istio.io/autoRegistrationGroup": "carts" } },
      spec: { address: "10.9.0.1", labels: { app: "cart" }, serviceAccount: "cart", locality: "r1/z1" },
      origin: { source: "autoregistered" },
    });
    await eventually("it is ill until it is said to be well", () => ["", "10.9.0.1:8080 ill"].includes(latestMembers(seen)));
    vm.health();
    await eventually("it is well", () => latestMembers(seen) === "10.9.0.1:8080");
    vm.health("no answer on 8080");
    await eventually("it is ill", () => ["", "10.9.0.1:8080 ill"].includes(latestMembers(seen)));
    vm.health();
    await eventually("it is well again", () => latestMembers(seen) === "10.9.0.1:8080");
    expect((await entriesOf(istiod))[0]?.origin.observed).toBe("healthy");

    await istiod.stop();
    await istiod.start();
    const after = watchCarts(istiod);
    await eventually("endpoints come", () => after.length > 0);
    expect(membersIn(after[0] ?? { resources: [] })).toEqual(["10.9.0.1:8080"]);
    const again = await openVmStream(istiod, { certificate, metadata: probed });
    expect(await again.first).toBe("served");
    again.close();
    await eventually("it is taken out", () => latestMembers(after) === "");
    expect(await entriesOf(istiod)).toEqual([]);
    await eventually("it is counted", async () => (await istiod.metric("auto_registration_deletes_total")) === 1);
  });

  it("is turned away where the group is not its own, or is not there", async () => {
    const istiod = await startIstiod({ files: { "conf/cart.yaml": CART_GROUP } });
    const certificate = await askCertificate(istiod, { token: await istioctl(istiod, ["token", "-n", "shop", "-s", "intruder"]) });
    const first = async (metadata: Readonly<Record<string, string>>): Promise<string> =>
      (await openVmStream(istiod, { certificate, metadata })).first;
    expect(await first({ AUTO_REGISTER_GROUP: "carts" })).toContain('members of group "carts" have service account "cart"');
    expect(await first({ AUTO_REGISTER_GROUP: "nobody" })).toContain("there is no WorkloadGroup");
    expect(await first({})).toBe("served");
    expect(await entriesOf(istiod)).toEqual([]);
    expect(await istiod.metric("auto_registration_errors_total")).toBe(2);
    expect(istiod.log()).toMatch(/a proxy was turned away.*node=sidecar~10\.9\.0\.1~.*there is no WorkloadGroup "nobody"/);
  });
});

/** The group's own ProxyConfig: ports that nobody else on this machine has, and what shows that the rest of it counts. */
const withProxyConfig = (group: string, { admin, status }: AgentPorts): string => {
  const config = {
    proxyAdminPort: admin,
    statusPort: status,
    concurrency: 1,
    interceptionMode: "NONE",
    proxyMetadata: { ISTIO_META_TIER: "group" },
  };
  return group
    .replace(
      "metadata: {labels: {app: cart}}",
      `metadata: {labels: {app: cart}, annotations: {proxy.istio.io/config: '${JSON.stringify(config)}'}}`,
    )
    .replace("locality: r1/z1", "locality: r1/z1, network: vms");
};

describe("a join bundle", () => {
  it("is all a machine with the agent needs: it joins, registers and comes back without its token", async () => {
    const ports = { admin: await freePort(), status: await freePort(), readiness: await freePort(), prometheus: await freePort() };
    const istiod = await startIstiod({
      files: { "conf/cart.yaml": withProxyConfig(CART_GROUP, ports), "mesh.yaml": "trustDomain: mesh.test\n" },
    });
    const bundle = ["entry", "configure", "--name", "carts", "-n", "shop", "--autoregister", "--internalIP", "127.0.0.1"];
    const told = await istioctl(istiod, [...bundle, "-o", "join.tar"]);
    expect(told).toContain("good for one machine");
    await expect(istioctl(istiod, [...bundle, "-o", "join.tar"])).rejects.toMatchObject({ stderr: expect.stringContaining("--overwrite") });
    expect((await stat(join(istiod.home, "join.tar"))).mode & 0o777).toBe(0o600);
    await istioctl(istiod, [...bundle, "-o", "join"]);
    expect((await readdir(join(istiod.home, "join"))).sort()).toEqual([
      "cluster.env",
      "hosts",
      "istio-token",
      "mesh.yaml",
      "root-cert.pem",
    ]);

    const home = await tempDir();
    await mkdir(home, { recursive: true });
    await run("tar", ["-xf", join(istiod.home, "join.tar"), "-C", home]);
    expect((await stat(join(home, "var/run/secrets/tokens/istio-token"))).mode & 0o777).toBe(0o600);
    const agent = await startBundledAgent({ home, ports, dnsPort: await freePort() });
    await eventually("it registered", async () => (await entriesOf(istiod)).length === 1);
    // Its only token went for its certificate, which got it everything else.
    expect(istiod.log()).not.toContain("turned away");
    expect(agent.log()).not.toMatch(/built-in|used before/);
    expect((await entriesOf(istiod))[0]).toMatchObject({
      metadata: { name: "carts-127.0.0.1-vms", namespace: "shop" },
      spec: { address: "127.0.0.1", labels: { app: "cart" }, serviceAccount: "cart", network: "vms" },
    });
    const { node, command_line_options: flags } = JSON.parse(await agent.admin("/server_info"));
    expect(node.id).toMatch(/^sidecar~127\.0\.0\.1~[^~]+\.shop~shop\.svc\.cluster\.local$/);
    expect(node.metadata).toMatchObject({
      NAMESPACE: "shop",
      SERVICE_ACCOUNT: "cart",
      CLUSTER_ID: "Kubernetes",
      MESH_ID: "mesh.test",
      NETWORK: "vms",
      WORKLOAD_NAME: "carts",
      TIER: "group",
      LABELS: { app: "cart", "service.istio.io/canonical-name": "cart", "service.istio.io/canonical-revision": "latest" },
    });
    expect(flags.concurrency).toBe(1);
    expect(await agent.admin("/certs")).toContain("spiffe://mesh.test/ns/shop/sa/cart");
    await agent.stop();
    // As after a reboot: what was under /run is gone, the token with it.
    await rm(join(home, "var/run"), { recursive: true });
    agent.start();
    await agent.ready();
    expect(await istiod.metric("istiod_refused_callers")).toBe(0);
  });

  it("has the control plane's bootstrap and is refused nothing, also where that is farther away than the CA, which uses the token up", async () => {
    const istiod = await startIstiod({ files: { "conf/cart.yaml": CART_GROUP } });
    const slow = await startRelay({ to: istiod.securePort, delayMs: 150 });
    const agent = await startAgentProcess({
      name: "carts",
      serviceAccount: "cart",
      address: "127.0.0.1",
      istiod: `127.0.0.1:${istiod.securePort}`,
      root: await rootOf(istiod),
      token: await joinToken(istiod),
      env: { PILOT_ADDRESS: `127.0.0.1:${slow.port}`, ISTIO_META_AUTO_REGISTER_GROUP: "carts" },
    });
    expect(await istiod.metric("istiod_refused_callers")).toBe(0);
    expect(agent.log()).not.toContain("bootstrap");
  });
});
