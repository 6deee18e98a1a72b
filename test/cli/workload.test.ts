import { execFileSync } from "node:child_process";
import { once } from "node:events";
import { mkdir, readFile, stat, writeFile } from "node:fs/promises";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { dirname, join } from "node:path";
import { load } from "js-yaml";
import { describe, expect, it, onTestFinished } from "vitest";
import { parseEnv } from "../../src/agent/sidecar-env.ts";
import { ensureJoinKey } from "../../src/authn/join-key.ts";
import { tempDir } from "../support/cleanup.ts";
import { istioctl } from "./cli-host.ts";

const GROUP = `
apiVersion: networking.istio.io/v1
kind: WorkloadGroup
metadata: {name: carts, namespace: shop}
spec:
  metadata: {labels: {app: cart}}
  template: {serviceAccount: cart, ports: {http: 8080, grpc: 9090}, network: vms}
  probe: {periodSeconds: 5, httpGet: {port: 8080, path: "/it's?a=$b\\\\"}}
`;
const ROOT = "-----BEGIN CERTIFICATE-----\nAA==\n-----END CERTIFICATE-----\n";

/** A base directory whose istiod does not run: tokens are signed with its key. */
async function site(mesh = ""): Promise<{ home: string; run(...words: readonly string[]): ReturnType<typeof istioctl> }> {
  const home = await tempDir();
  const put = async (path: string, text: string): Promise<void> => {
    await mkdir(dirname(join(home, path)), { recursive: true });
    await writeFile(join(home, path), text);
  };
  await put("etc/istio/mesh.yaml", `listen: {httpAddr: "127.0.0.1:1"}\n${mesh}`);
  await put("etc/cacerts/root-cert.pem", ROOT);
  await put("group.yaml", GROUP);
  await ensureJoinKey(home);
  const env = { ISTIO_HOME: home };
  return { home, run: (...words) => istioctl(["x", "workload", ...words], { env, cwd: home }) };
}

const claimsOf = (token: string): unknown => JSON.parse(Buffer.from(token.split(".")[1] ?? "", "base64url").toString());

describe("istioctl x workload token", () => {
  it("signs with the key of this machine where istiod does not answer, and says so", async () => {
    const { run } = await site();
    const { status, out, err } = await run("token", "-n", "shop", "-s", "cart", "--ttl", "90m");
    expect(status).toBe(0);
    expect(err).toContain("istiod does not answer");
    const claims = claimsOf(out.trim()) as { readonly iat: number; readonly exp: number };
    expect(claims).toMatchObject({ sub: "system:serviceaccount:shop:cart", aud: ["istio-ca"], iss: "istiod", jti: expect.any(String) });
    expect(claims.exp - claims.iat).toBeGreaterThanOrEqual(5_400);
  });

  it.each([
    [["token", "-n", "a/b"], 2, "namespace is malformed"],
    [["token", "--ttl", "soon"], 2, "not a duration"],
    [["token", "--ttl", "169h"], 2, "seven days"],
    [["token", "more"], 2, "given by flags"],
    [["token", "--istiod", "http://127.0.0.1:1"], 1, "cannot reach istiod"],
    [["toke"], 2, 'no command "x workload toke"'],
  ] as const)("%j is not understood", async (words, status, message) => {
    const { run } = await site();
    const answer = await run(...words);
    expect(answer).toMatchObject({ status, err: expect.stringContaining(message) });
  });
});

describe("istioctl x workload entry configure", () => {
  it("writes Istio's five files, which the agent understands", async () => {
    const { home, run } = await site();
    const words = ["entry", "configure", "-f", "group.yaml", "--address", "10.1.2.3:15012", "--autoregister", "--clusterID", "c1"];
    expect(await run(...words, "-o", "out")).toMatchObject({ status: 0, out: expect.stringContaining("good for one machine") });
    const text = (name: string): Promise<string> => readFile(join(home, "out", name), "utf8");
    const env = parseEnv(await text("cluster.env"));
    expect(env).toMatchObject({
      ISTIO_ADDRESS: "10.1.2.3:15012",
      POD_NAMESPACE: "shop",
      SERVICE_ACCOUNT: "cart",
      TRUST_DOMAIN: "cluster.local",
      ISTIO_META_CLUSTER_ID: "c1",
      ISTIO_META_NETWORK: "vms",
      ISTIO_META_AUTO_REGISTER_GROUP: "carts",
      ISTIO_META_DNS_CAPTURE: "true",
      ISTIO_INBOUND_PORTS: expect.stringMatching(/^(8080,9090|9090,8080)$/),
    });
    expect(JSON.parse(env.ISTIO_METAJSON_LABELS ?? "")).toMatchObject({
      app: "cart",

      "service.istio.io/canonical-name": "cart",
    });
    expect(JSON.parse(env.PROXY_CONFIG ?? "")).toEqual({
      readinessProbe: { periodSeconds: 5, httpGet: { port: 8080, path: "/it's?a=$b\\" } },
    });
    const shell = execFileSync("sh", ["-c", '. ./out/cluster.env && printf %s "$PROXY_CONFIG"'], { cwd: home, encoding: "utf8" });
    expect(shell).toBe(env.PROXY_CONFIG);
    expect(load(await text("mesh.yaml"))).toMatchObject({
      defaultConfig: {
        discoveryAddress: "istiod.istio-system.svc:15012",
        proxyMetadata: { ISTIO_META_AUTO_REGISTER_GROUP: "carts" },
        readinessProbe: { httpGet: { port: 8080 } },
      },
    });
    expect(await text("hosts")).toBe("10.1.2.3 istiod.istio-system.svc\n");
    expect(await text("root-cert.pem")).toBe(ROOT);
    expect(claimsOf(await text("istio-token"))).toMatchObject({ sub: "system:serviceaccount:shop:cart" });
    expect((await stat(join(home, "out/istio-token"))).mode & 0o777).toBe(0o600);

    expect(await run(...words, "-o", "out")).toMatchObject({ status: 2, err: expect.stringContaining("--overwrite") });
    const before = await text("istio-token");
    expect(await run(...words, "-o", "out", "--overwrite")).toMatchObject({ status: 0 });
    expect(await text("istio-token")).not.toBe(before);
  });

  it("puts the group's annotations over the mesh's ProxyConfig, for its own agent and for Istio's", async () => {
    const { home, run } = await site(
      "defaultConfig: {concurrency: 4, statusPort: 15030, proxyMetadata: {ISTIO_META_TIER: mesh, SECRET_TTL: 2h}, readinessProbe: {tcpSocket: {port: 1}}}\n",
    );
    const annotated = GROUP.replace("namespace: shop}", "namespace: shop, annotations: {proxy.istio.io/config: 'concurrency: 3'}}").replace(
      "{labels: {app: cart}}",
      "{labels: {app: cart}, annotations: {proxy.istio.io/config: '{concurrency: 1, proxyMetadata: {ISTIO_META_TIER: group}}'}}",
    );
    await writeFile(join(home, "group.yaml"), annotated);
    const words = ["entry", "configure", "-f", "group.yaml", "--ingressIP", "10.1.2.3", "--externalIP", "203.0.113.9"];
    expect(await run(...words, "-o", "out")).toMatchObject({ status: 0 });
    const env = parseEnv(await readFile(join(home, "out/cluster.env"), "utf8"));
    expect(JSON.parse(env.PROXY_CONFIG ?? "")).toEqual({
      concurrency: 1,
      proxyMetadata: { ISTIO_META_TIER: "group" },
      readinessProbe: expect.objectContaining({ periodSeconds: 5 }),
    });
    expect(env).toMatchObject({
      ISTIO_META_TIER: "group",
      SECRET_TTL: "2h",
      ISTIO_LOCAL_EXCLUDE_PORTS: "22,15090,15021,15030",
      INSTANCE_IP: "203.0.113.9",
      REWRITE_PROBE_LEGACY_LOCALHOST_DESTINATION: "true",
    });
    const { defaultConfig } = load(await readFile(join(home, "out/mesh.yaml"), "utf8")) as { defaultConfig: Record<string, unknown> };
    expect(defaultConfig).toEqual({
      concurrency: 1,
      statusPort: 15_030,
      discoveryAddress: "istiod.istio-system.svc:15012",
      meshId: "cluster.local",
      proxyMetadata: expect.objectContaining({ ISTIO_META_TIER: "group", SECRET_TTL: "2h", ISTIO_META_WORKLOAD_NAME: "carts" }),
      readinessProbe: expect.objectContaining({ periodSeconds: 5 }),
    });
    await writeFile(join(home, "group.yaml"), annotated.replace("concurrency: 1", "concurrency: many"));
    expect(await run(...words, "-o", "again")).toMatchObject({
      status: 1,
      err: expect.stringContaining("proxy.istio.io/config: concurrency"),
    });
  });

  it("finds istiod at a gateway's Service of the cluster", async () => {
    const { home, run } = await site();
    const services: Readonly<Record<string, object>> = {
      "/api/v1/namespaces/istio-system/services/east": {
        status: { loadBalancer: { ingress: [{ hostname: "x" }, { ip: "198.51.100.7" }] } },
      },
      "/api/v1/namespaces/edge/services/east": { spec: { externalIPs: ["198.51.100.8"] } },
      "/api/v1/namespaces/istio-system/services/inner": { spec: {} },
    };
    const server = createServer((request, response) => {
      const found = services[request.url ?? ""];
      response.writeHead(found === undefined ? 404 : 200, { "content-type": "application/json" });
      response.end(JSON.stringify(found === undefined ? { kind: "Status" } : { kind: "Service", metadata: { name: "east" }, ...found }));
    }).listen(0, "127.0.0.1");
    onTestFinished(() => void server.close());
    await once(server, "listening");
    const config = {
      contexts: [{ name: "a", context: { cluster: "a", user: "a" } }],
      "current-context": "a",
      clusters: [{ name: "a", cluster: { server: `http://127.0.0.1:${(server.address() as AddressInfo).port}` } }],
      users: [{ name: "a", user: {} }],
    };
    await writeFile(join(home, "kubeconfig"), JSON.stringify(config));
    const configure = (service: string) =>
      run("entry", "configure", "-f", "group.yaml", "--ingressService", service, "--kubeconfig", "kubeconfig", "-o", service);
    for (const [service, address] of [
      ["east", "198.51.100.7"],
      ["east.edge", "198.51.100.8"],
    ] as const) {
      expect(await configure(service)).toMatchObject({ status: 0 });
      expect(await readFile(join(home, service, "hosts"), "utf8")).toBe(`${address} istiod.istio-system.svc\n`);
    }
    expect(await configure("inner")).toMatchObject({ status: 1, err: expect.stringContaining("has no address outside of the cluster") });
  });

  it("goes by what is in force where istiod runs, and not by a mesh.yaml beside it", async () => {
    const { home, run } = await site("defaultConfig: {concurrency: 9}\n");
    const pages: Readonly<Record<string, object>> = {
      "/debug/mesh": {
        mesh: { trustDomain: "mesh.test", defaultConfig: { concurrency: 3, meshId: "m1", proxyMetadata: { ISTIO_META_TIER: "cluster" } } },
        settings: { clusterId: "east", podNamespace: "mesh-system" },
        process: { listen: { secureGrpcAddr: "203.0.113.5:15012" } },
      },
      "/api/workload-token": { token: "a.b.c", expiresAt: 0, roots: ROOT, trustDomain: "mesh.test" },
    };
    const server = createServer((request, response) => {
      response.writeHead(pages[request.url ?? ""] === undefined ? 404 : 200).end(JSON.stringify(pages[request.url ?? ""] ?? {}));
    }).listen(0, "127.0.0.1");
    onTestFinished(() => void server.close());
    await once(server, "listening");
    const istiod = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    expect(await run("entry", "configure", "-f", "group.yaml", "--istiod", istiod, "-o", "out")).toMatchObject({ status: 0 });
    const text = (name: string): Promise<string> => readFile(join(home, "out", name), "utf8");
    expect(parseEnv(await text("cluster.env"))).toMatchObject({
      ISTIO_ADDRESS: "203.0.113.5:15012",
      ISTIOD_SAN: "istiod.mesh-system.svc",
      ISTIO_META_CLUSTER_ID: "east",
      ISTIO_META_MESH_ID: "m1",
      ISTIO_META_TIER: "cluster",
      TRUST_DOMAIN: "mesh.test",
    });
    expect(load(await text("mesh.yaml"))).toMatchObject({ defaultConfig: { concurrency: 3 } });
  });

  it("writes an archive that is unpacked in place", async () => {
    const { home, run } = await site();
    for (const name of ["join.tar", "join.tar.gz"]) {
      const words = ["--ingressIP", "10.1.2.3", "--internalIP", "192.0.2.9", "--capture-dns", "false"];
      expect(await run("entry", "configure", "-f", "group.yaml", ...words, "-o", name)).toMatchObject({ status: 0 });
      expect((await stat(join(home, name))).mode & 0o777).toBe(0o600);
      const listed = execFileSync("tar", ["-tvf", name], { cwd: home, encoding: "utf8" });
      expect(listed).toMatch(/-rw------- \S+ +\d+ \S+ \S+ var\/run\/secrets\/tokens\/istio-token\n/);
      const env = parseEnv(execFileSync("tar", ["-xOf", name, "var/lib/istio/envoy/cluster.env"], { cwd: home, encoding: "utf8" }));
      expect(env).toMatchObject({ ISTIO_ADDRESS: "10.1.2.3:15012", INSTANCE_IP: "192.0.2.9", ISTIO_SVC_IP: "192.0.2.9" });
      expect(env.ISTIO_META_DNS_CAPTURE ?? env.ISTIO_META_AUTO_REGISTER_GROUP).toBeUndefined();
    }
  });

  it.each([
    [["-f", "group.yaml"], 2, "say where to write"],
    [["-o", "x"], 2, "name a file with a WorkloadGroup"],
    [["-f", "group.yaml", "--name", "other", "-o", "x"], 1, "there is no WorkloadGroup other"],
    [["-f", "group.yaml", "-s", "admin", "-o", "x"], 2, 'have the service account "cart"'],
    [["-f", "group.yaml", "--address", "10.0.0.1", "--ingressIP", "10.0.0.2", "-o", "x"], 2, "give one"],
    [["-f", "group.yaml", "--internalIP", "10.0.0.1", "--externalIP", "10.0.0.2", "-o", "x"], 2, "exclude each other"],
    [["-f", "group.yaml", "--externalIP", "here", "-o", "x"], 2, "is no address"],
    [["-f", "group.yaml", "--tokenDuration", "1h", "-o", "x"], 2, "takes seconds"],
    [["-f", "bad.yaml", "-o", "x"], 1, "is not valid"],
    [["-f", "text.yaml", "-o", "x"], 1, "not valid YAML"],
  ] as const)("%j is refused, and nothing is written", async (words, status, message) => {
    const { home, run } = await site();
    await writeFile(join(home, "text.yaml"), "a: [\n");
    await writeFile(join(home, "bad.yaml"), GROUP.replace("template:", "templat:"));
    expect(await run("entry", "configure", ...words)).toMatchObject({ status, err: expect.stringContaining(message) });
    await expect(stat(join(home, "x"))).rejects.toThrow("ENOENT");
  });
});
