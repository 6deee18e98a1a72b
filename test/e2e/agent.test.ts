import { readdir, readFile, stat } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { systemClock } from "../../src/base/clock.ts";
import { type AgentMesh, startAgentMesh } from "../support/agent-mesh.ts";
import { call, tally } from "../support/calls.ts";
import { keepCalling } from "../support/traffic.ts";
import { eventually } from "../support/wait.ts";
import { startWiretap } from "../support/wiretap.ts";

const WEB = "spiffe://cluster.local/ns/shop/sa/web";
const CART = "spiffe://cluster.local/ns/shop/sa/cart";

/** What the network carries between the two from now on. */
async function tap({ istiod, ingress, target }: AgentMesh) {
  const wire = await startWiretap(ingress.address, ingress);
  const entry = `
apiVersion: networking.istio.io/v1
kind: WorkloadEntry
metadata: {name: cart, namespace: shop}
spec:
  address: ${ingress.address}
  ports: {http: ${wire.port}}
  serviceAccount: cart
  labels: {app: cart, security.istio.io/tlsMode: istio}
`;
  const config = await readFile(join(istiod.home, "etc/istio/conf/cart.yaml"), "utf8");
  const others = config.split("---").filter((document) => !document.includes("WorkloadEntry"));
  await istiod.write("conf/cart.yaml", [...others, entry].join("---"));
  await eventually("calls take the way that is watched", async () => (await call(target)).status === 200 && wire.heard().length > 0);
  return wire;
}

const strict = (mode: string): string =>
  `{apiVersion: security.istio.io/v1, kind: PeerAuthentication, metadata: {name: default, namespace: shop}, spec: {mtls: {mode: ${mode}}}}\n`;

/** All files below a directory. */
async function filesBelow(directory: string): Promise<readonly string[]> {
  const entries = await readdir(directory, { recursive: true, withFileTypes: true });
  return entries.filter((entry) => entry.isFile()).map((entry) => join(entry.parentPath, entry.name));
}

describe("two workloads with agents", () => {
  it("talk in mutual TLS that neither of them knows of, each as who its token says", async () => {
    const mesh = await startAgentMesh();
    const wire = await tap(mesh);
    expect(await tally(10, { ...mesh.target, path: "/of-no-concern-to-others" })).toEqual({ cart: 10 });
    const heard = wire.heard();
    expect(heard[0]).toBe(0x16);
    expect(heard.includes("HTTP/1.1")).toBe(false);
    expect(heard.includes("/of-no-concern-to-others")).toBe(false);
    const { headers } = mesh.app.hits.at(-1) ?? {};
    expect(headers?.["x-forwarded-client-cert"]).toContain(`URI=${WEB}`);
    expect(headers?.["x-forwarded-client-cert"]).toContain(`By=${CART}`);
    expect(await mesh.client.admin("/certs")).toContain(WEB);
    expect(await mesh.server.admin("/certs")).toContain(CART);
  });

  it("refuse plaintext where a policy is strict, and take both where it is not", async () => {
    const mesh = await startAgentMesh();
    const plain = (): Promise<number> =>
      call({ ...mesh.ingress, host: mesh.target.host }).then(
        ({ status }) => status,
        () => 0,
      );
    expect(await plain()).toBe(200);
    await mesh.istiod.write("conf/strict.yaml", strict("STRICT"));
    await eventually("plaintext is refused", async () => (await plain()) === 0);
    expect(await tally(5, mesh.target)).toEqual({ cart: 5 });
    await mesh.istiod.write("conf/strict.yaml", strict("PERMISSIVE"));
    await eventually("plaintext is taken again", async () => (await plain()) === 200);
  });

  it("leave no key on disk and no socket open to others", async () => {
    const { client } = await startAgentMesh();
    const modeOf = async (path: string): Promise<string> => ((await stat(join(client.home, path))).mode & 0o777).toString(8);
    expect(await modeOf("etc/istio/proxy/XDS")).toBe("600");
    expect(await modeOf("etc/istio/proxy")).toBe("700");
    expect(await modeOf("var/run/secrets/workload-spiffe-uds/socket")).toBe("600");
    expect(await modeOf("var/run/secrets/workload-spiffe-uds")).toBe("700");
    await eventually(
      "the configuration is kept",
      async () => (await readdir(join(client.home, "var/lib/istio/envoy/last-good"))).length > 3,
    );
    for (const file of await filesBelow(client.home)) {
      // A file that was being written has another name by now.
      const [content, about] = await Promise.all([readFile(file), stat(file)]).catch(() => []);
      expect([file, content?.includes("PRIVATE KEY") ?? false]).toEqual([file, false]);
      if (file.includes("/last-good/") && about !== undefined) expect([file, (about.mode & 0o777).toString(8)]).toEqual([file, "600"]);
    }
  });

  it("are ready when Envoy is: the agent says so, and so does Envoy for it", async () => {
    const { client } = await startAgentMesh();
    for (const port of [client.statusPort, client.readinessPort])
      expect((await fetch(`http://127.0.0.1:${port}/healthz/ready`)).status).toBe(200);
    expect((await fetch(`http://127.0.0.1:${client.statusPort}/unknown`)).status).toBe(404);
    expect((await fetch(`http://127.0.0.1:${client.statusPort}/quitquitquit`)).status).toBe(405);
  });
});

describe("certificates", () => {
  // As long as the promise is about, and on machines of their own: agent-rotation.test.ts. AGENT_ROTATION_SECONDS=180 runs this one as long.
  const seconds = Number(process.env.AGENT_ROTATION_SECONDS ?? 36);
  const ttl = seconds > 60 ? 60 : 12;
  it(`that live for ${ttl} s are replaced for ${seconds} s without a request noticing`, { timeout: (seconds + 240) * 1_000 }, async () => {
    const everyRequestShakesHands =
      "{apiVersion: networking.istio.io/v1, kind: DestinationRule, metadata: {name: cart, namespace: shop}, spec: {host: cart.shop.svc.cluster.local, trafficPolicy: {connectionPool: {http: {maxRequestsPerConnection: 1}}}}}\n";
    const mesh = await startAgentMesh({ config: everyRequestShakesHands, agents: { env: { SECRET_TTL: `${ttl}s` } } });
    const serials = new Set<string>();
    const traffic = keepCalling(mesh.target);
    const end = systemClock.monotonic() + seconds * 1_000;
    while (systemClock.monotonic() < end) {
      await traffic.more(10);
      serials.add(await mesh.server.serial());
      await systemClock.sleep(100);
    }
    expect(await traffic.stop()).toEqual([]);
    expect(serials.size).toBeGreaterThanOrEqual(Math.floor(seconds / ttl) + 1);
  });
});
