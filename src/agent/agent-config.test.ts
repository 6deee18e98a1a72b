import { mkdir, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { describe, expect, it } from "vitest";
import { tempDir } from "../../test/support/cleanup.ts";
import { unknownSettings } from "../settings/read-settings.ts";
import { readAgentConfig } from "./agent-config.ts";
import { parseTargets } from "./control-plane-address.ts";
import { buildLookup, domainOf } from "./dns/name-table.ts";
import { nodeIdentity, unreadMetadata } from "./node-identity.ts";
import { parseEnv, unreadLines } from "./sidecar-env.ts";
import { findTrustRoots } from "./trust-roots.ts";

async function home(files: Readonly<Record<string, string>>): Promise<string> {
  const directory = await tempDir();
  for (const [file, text] of Object.entries(files)) {
    await mkdir(dirname(join(directory, file)), { recursive: true });
    await writeFile(join(directory, file), text);
  }
  return directory;
}

const INTERFACES = [
  { interface: "eth0", address: "10.0.0.7" },
  { interface: "net1", address: "10.9.0.7" },
  { interface: "eth0", address: "fd00:0::7" },
];

const hostOf = (baseDir: string, env: Readonly<Record<string, string>>) =>
  ({ baseDir, env, type: "sidecar", hostname: "machine", interfaces: INTERFACES, version: "1.32.0" }) as const;

describe("addresses of a control plane", () => {
  it.for([
    ["istiod.istio-system", true, "istiod.istio-system.svc", 15_012, true, "istiod.istio-system.svc"],
    ["istiod.istio-system", false, "istiod.istio-system", 15_012, true, "istiod.istio-system"],
    ["istiod.example.com:443", true, "istiod.example.com", 443, true, "istiod.example.com"],
    ["https://istiod.example.com/", false, "istiod.example.com", 443, true, "istiod.example.com"],
    ["10.0.0.1:15012", false, "10.0.0.1", 15_012, true, "istiod.istio-system.svc"],
    ["[fd00::1]:15012", false, "fd00::1", 15_012, true, "istiod.istio-system.svc"],
    ["localhost:15010", false, "localhost", 15_010, false, "localhost"],
  ] as const)("%s (in a pod: %s)", ([text, inPod, host, port, tls, serverName]) => {
    expect(parseTargets(text, { inPod })).toEqual([{ host, port, tls, serverName }]);
  });

  it("are several where commas say so, and none where they are not addresses", () => {
    expect(parseTargets("a:1, b:2,", { inPod: false }).map(({ host }) => host)).toEqual(["a", "b"]);
    for (const wrong of ["a:b", "a:0", "a:70000", "a b", "[x]:1"])
      expect(() => parseTargets(wrong, { inPod: false })).toThrow("is no address");
  });
});

describe("what an agent is told", () => {
  it("comes from sidecar.env, under the real environment", async () => {
    const baseDir = await home({
      "var/lib/istio/envoy/sidecar.env":
        "# of the machine\nPOD_NAMESPACE=shop\nexport ISTIO_ADDRESS='a:15012'\nSERVICE_ACCOUNT=\"web\" # who\n",
      "var/lib/istio/envoy/cluster.env": "POD_NAMESPACE=other\nTRUST_DOMAIN=example.com\n",
    });
    const config = await readAgentConfig(hostOf(baseDir, { ISTIO_ADDRESS: "b:15012" }));
    expect(config.settings).toMatchObject({ podNamespace: "shop", serviceAccount: "web", trustDomain: "example.com" });
    expect([config.discovery[0]?.host, config.ca[0]?.host]).toEqual(["b", "b"]);
  });

  it("is the domain of short names, in the node and for names alike", async () => {
    const domainIn = async (env: Readonly<Record<string, string>>) =>
      nodeIdentity({
        ...(await readAgentConfig(hostOf("/nowhere", { ISTIO_ADDRESS: "a", POD_NAMESPACE: "shop", ...env }))),
        hasIdentity: true,
        hasCredentials: false,
      }).id;
    expect(await domainIn({})).toMatch(/~machine\.shop~shop\.svc\.cluster\.local$/);
    const id = await domainIn({ PROXY_DOMAIN: "shop.svc.example.org" });
    expect(id).toMatch(/~machine\.shop~shop\.svc\.example\.org$/);
    const info = { ips: ["10.0.0.1"], registry: "Kubernetes", shortname: "web", namespace: "shop", altHosts: [] };
    const place = { namespace: "shop", domain: domainOf(id, "shop"), search: "" };
    const lookup = buildLookup([{ host: "web.shop.svc.example.org", ...info }], place);
    for (const name of ["web", "web.shop", "web.shop.svc"]) expect(lookup.find(name), name).toBeDefined();
  });

  it("comes from a bundle as Istio makes it, with the proxy's configuration in a file of the mesh", async () => {
    const baseDir = await home({
      "var/lib/istio/envoy/cluster.env":
        "CANONICAL_SERVICE='web'\nISTIO_INBOUND_PORTS='*'\nISTIO_META_WORKLOAD_NAME='web'\nISTIO_NAMESPACE='shop'\nISTIO_SERVICE='web.shop'\nISTIO_SVC_IP='192.0.2.9'\nPOD_NAMESPACE='shop'\nSERVICE_ACCOUNT='web'\nTRUST_DOMAIN=''\n",
      "etc/istio/config/mesh":
        "trustDomain: ignored\ndefaultConfig:\n  discoveryAddress: istiod-blue.istio-system.svc:15012\n  statusPort: 15020\n  concurrency: 3\n  proxyMetadata: {ISTIO_META_DNS_CAPTURE: 'true', A: '1'}\n  readinessProbe: {httpGet: {port: 8080}}\n",
    });
    const given = { PROXY_CONFIG: '{"concurrency": 2, "proxyMetadata": {"ISTIO_META_X": "y"}}' };
    const config = await readAgentConfig(hostOf(baseDir, given));
    expect(config.discovery).toMatchObject([{ host: "istiod-blue.istio-system.svc", port: 15_012, tls: true }]);
    expect(config).toMatchObject({
      isAddressAssumed: false,
      ca: config.discovery,
      settings: { instanceIp: "192.0.2.9", trustDomain: "cluster.local" },
    });
    expect(config.proxy).toMatchObject({
      concurrency: 2,
      given: { readinessProbe: { httpGet: { port: 8080 } }, proxyMetadata: { A: "1" } },
    });
    const { id, metadata } = nodeIdentity({ ...config, hasIdentity: true, hasCredentials: false });
    expect(id).toBe("sidecar~192.0.2.9~machine.shop~shop.svc.cluster.local");
    expect(metadata).toMatchObject({ DNS_CAPTURE: "true", X: "y", WORKLOAD_NAME: "web", PROXY_CONFIG: { concurrency: 2 } });
    expect(unknownSettings(config.env)).toEqual([]);
    expect(config.paths.certificates).toBe(join(baseDir, "etc/certs"));
    const inMemory = await readAgentConfig(hostOf(baseDir, { ...given, OUTPUT_CERTS: "" }));
    expect(inMemory.paths.certificates).toBeUndefined();
  });

  it.for([
    ["files of a bundle", { "var/lib/istio/envoy/cluster.env": "POD_NAMESPACE=shop\n" }, {}],
    ["a token", { "var/run/secrets/tokens/istio-token": "x" }, {}],
    ["a file of the mesh", { "etc/istio/config/mesh": "defaultConfig: {}\n" }, {}],
    ["another file of the mesh", { "my/mesh": "" }, { PROXY_MESH_CONFIG: "my/mesh" }],
    ["a group", {}, { ISTIO_META_AUTO_REGISTER_GROUP: "web" }],
  ] as const)("is of Istio's default control plane, where there is %s and no address", async ([, files, env]) => {
    const config = await readAgentConfig(hostOf(await home(files), env));
    expect(config).toMatchObject({ isAddressAssumed: true, discovery: [{ host: "istiod.istio-system.svc", port: 15_012 }] });
  });

  it("is nobody's, where nothing is said", async () => {
    expect(await readAgentConfig(hostOf(await home({}), {}))).toMatchObject({ isAddressAssumed: false, discovery: [] });
  });

  it("is a fault, where the file of the mesh cannot be read", async () => {
    const config = async (text: string) => readAgentConfig(hostOf(await home({ "etc/istio/config/mesh": text }), {}));
    await expect(config("- a\n")).rejects.toThrow(/etc\/istio\/config\/mesh cannot be read: it is not an object/);
    await expect(config("defaultConfig: x\n")).rejects.toThrow(/it is not an object/);
    await expect(config("a: [\n")).rejects.toThrow(/config\/mesh cannot be read/);
  });

  it("has no CA where configuration comes in plaintext, unless one is named", async () => {
    const baseDir = await tempDir();
    const plain = { PROXY_CONFIG: '{"controlPlaneAuthPolicy": "NONE", "discoveryAddress": "c:1"}' };
    expect(await readAgentConfig(hostOf(baseDir, plain))).toMatchObject({ discovery: [{ host: "c", tls: false }], ca: [] });
    expect((await readAgentConfig(hostOf(baseDir, { ...plain, CA_ADDR: "ca:443" }))).ca).toMatchObject([{ host: "ca", tls: true }]);
  });

  it("leaves out Istio's usual address in pods that Istio injects", async () => {
    const baseDir = await tempDir();
    const discovery = async (env: Readonly<Record<string, string>>): Promise<readonly string[]> =>
      (await readAgentConfig(hostOf(baseDir, env))).discovery.map(({ host, port }) => `${host}:${port}`);
    const pod = { KUBERNETES_SERVICE_HOST: "10.96.0.1" };
    expect(await discovery({ ...pod, PROXY_CONFIG: "{}\n" })).toEqual(["istiod.istio-system.svc:15012"]);
    expect(await discovery({ ...pod, PROXY_CONFIG: '{"discoveryAddress": "c:1"}' })).toEqual(["c:1"]);
    expect(await discovery(pod), "a control plane of its own").toEqual([]);
    expect(await discovery({ PROXY_CONFIG: "{}" }), "so on a machine").toEqual([]);
  });

  it("is refused in a sentence where it cannot be read", async () => {
    const baseDir = await tempDir();
    const wrong = [{ SECRET_TTL: "soon" }, { PROXY_CONFIG: "[1]" }, { PROXY_CONFIG: "statusPort: high" }, { ISTIO_ADDRESS: "?" }];
    for (const env of wrong) await expect(readAgentConfig(hostOf(baseDir, env))).rejects.toThrow(/SECRET_TTL|PROXY_CONFIG|is no address/);
  });

  it("says in one line what is wrong with YAML that cannot be read", async () => {
    const [error] = await Promise.allSettled([readAgentConfig(hostOf(await tempDir(), { PROXY_CONFIG: "{bad" }))]);
    expect(error).toMatchObject({
      status: "rejected",
      reason: { message: expect.stringMatching(/^PROXY_CONFIG cannot be read: [^\n]+$/) },
    });
  });

  it("takes variables as shells write them", () => {
    expect(parseEnv('A=1\n B=\'x # y\'\nC="a\\"b"\nD=x # note\nnot a line\nE=\n')).toEqual({ A: "1", B: "x # y", C: 'a"b', D: "x", E: "" });
  });

  it("tells of lines and variables that say nothing, and never what is in them", async () => {
    const baseDir = await home({
      "var/lib/istio/envoy/sidecar.env": "# a note\n\nPOD_NAME=web\nsecret: x\n; another note\n",
      "var/lib/istio/envoy/cluster.env": "export A=1\n?",
    });
    const envoy = join(baseDir, "var/lib/istio/envoy");
    expect(await unreadLines(baseDir)).toEqual([`${envoy}/sidecar.env:4`, `${envoy}/cluster.env:2`]);
    expect(unreadMetadata({ ISTIO_METAJSON_LABELS: "{app", ISTIO_METAJSON_X: "{}", ISTIO_METAJSON_Y: "[]", ISTIO_META_Z: "{" })).toEqual([
      "ISTIO_METAJSON_LABELS",
      "ISTIO_METAJSON_Y",
    ]);
  });

  it("is not read past a file of variables that cannot be: without it this would be another machine", async () => {
    const baseDir = await home({ "var/lib/istio/envoy/sidecar.env/directory": "" });
    await expect(readAgentConfig(hostOf(baseDir, {}))).rejects.toThrow("sidecar.env cannot be read");
  });
});

describe("the node", () => {
  it("has Istio's form and metadata", async () => {
    const baseDir = await home({
      "etc/istio/pod/labels": 'app="web"\nversion="v\\"1"\npod-template-hash="5d"\n',
      "etc/istio/pod/annotations": 'a="pod"\n',
    });
    const env = {
      ISTIO_ADDRESS: "a",
      POD_NAME: "web-1",
      POD_NAMESPACE: "shop",
      INSTANCE_IP: "10.1.1.1",
      ISTIO_META_NETWORK: "n1",
      ISTIO_METAJSON_LABELS: '{"team": "red", "app": "old"}',
      ISTIO_METAJSON_ANNOTATIONS: '{"a": "said", "b": "said"}',
      DNS_PROXY_ADDR: "localhost:53",
      ISTIO_METAJSON_MORE: '{"OWNER": "deployment"}',
    };
    const config = await readAgentConfig(hostOf(baseDir, env));
    const node = nodeIdentity({ ...config, hasIdentity: false, hasCredentials: false });
    expect(node.id).toBe("sidecar~10.1.1.1~web-1.shop~shop.svc.cluster.local");
    expect(node.cluster).toBe("web.shop");
    expect(node.metadata).toMatchObject({
      NAMESPACE: "shop",
      INSTANCE_IPS: "10.1.1.1,10.0.0.7,10.9.0.7,fd00::7",
      NETWORK: "n1",
      OWNER: "deployment",
      STATIC_LABELS: { team: "red", app: "old" },
      ANNOTATIONS: { a: "pod", b: "said" },
      DNS_PROXY_ADDR: "localhost:53",
      WORKLOAD_IDENTITY_SOCKET_FILE: "socket",
      INTERCEPTION_MODE: "REDIRECT",
      WORKLOAD_IDENTITY: "none",
      STATUS_PORT: 15_020,
    });
    expect(node.metadata.LABELS).toEqual({ app: "web", version: 'v"1', team: "red" });
    expect(node.metadata).not.toHaveProperty("PROXY_CONFIG");
    expect(node.metadata).not.toHaveProperty("credential");
    const other = nodeIdentity({ ...config, hasIdentity: true, hasCredentials: true });
    expect(other.metadata).not.toHaveProperty("WORKLOAD_IDENTITY");
    expect(other.metadata).toMatchObject({ credential: "true" });
  });
});

describe("node metadata in ProxyConfig", () => {
  it("counts like variables, which go before it; other variables of proxyMetadata are the injector's to set", async () => {
    const proxyMetadata = { ISTIO_META_NETWORK: "n1", ISTIO_META_CLUSTER_ID: "c1", ISTIO_META_LEVEL: 3, SECRET_TTL: "1s" };
    const env = { PROXY_CONFIG: JSON.stringify({ proxyMetadata }), ISTIO_META_NETWORK: "n2" };
    const config = await readAgentConfig(hostOf(await tempDir(), env));
    expect(nodeIdentity({ ...config, hasIdentity: true, hasCredentials: false }).metadata).toMatchObject({
      NETWORK: "n2",
      CLUSTER_ID: "c1",
      LEVEL: "3",
    });
    expect(config.settings.secretTtlMs).toBe(86_400_000);
  });
});

describe("addresses of a workload", () => {
  const EXCLUDED = { "etc/istio/pod/annotations": 'traffic.sidecar.istio.io/excludeInterfaces="net1, net2"\n' };
  it.for([
    ["the pod's is the first, and none is there twice", "10.0.0.7", {}, "10.0.0.7,10.9.0.7,fd00::7"],
    ["the pod's may be of the second family", "fd00::0:7", {}, "fd00::7,10.0.0.7,10.9.0.7"],
    ["a machine has its own", "", {}, "10.0.0.7,10.9.0.7,fd00::7"],
    ["what is no address is left out", "pod", {}, "10.0.0.7,10.9.0.7,fd00::7"],
    ["interfaces outside the mesh are left out", "10.0.0.7", EXCLUDED, "10.0.0.7,fd00::7"],
    ["the pod's is its address wherever it is", "10.9.0.7", EXCLUDED, "10.9.0.7,10.0.0.7,fd00::7"],
  ] as const)("%s", async ([, INSTANCE_IP, files, addresses]) => {
    const config = await readAgentConfig(hostOf(await home(files), { INSTANCE_IP }));
    const { id, metadata } = nodeIdentity({ ...config, hasIdentity: true, hasCredentials: false });
    expect(metadata.INSTANCE_IPS).toBe(addresses);
    expect(id.split("~")[1]).toBe(addresses.split(",")[0]);
  });
});

describe("roots of a server", () => {
  const pem = (name: string): string => `-----BEGIN CERTIFICATE-----\n${name}\n`;
  const ask = (baseDir: string, more: { named?: string; port?: number; learned?: string } = {}) =>
    findTrustRoots({ baseDir, named: more.named ?? "", target: { port: more.port ?? 15_012 }, learned: more.learned ?? "" });

  it("are those of a named file, the platform's, the mesh's, the cluster's, in this order", async () => {
    const files = {
      "own.pem": pem("own"),
      "var/run/secrets/istio/root-cert.pem": pem("mesh"),
      "var/run/secrets/kubernetes.io/serviceaccount/ca.crt": pem("cluster"),
    };
    const baseDir = await home(files);
    expect((await ask(baseDir, { named: "own.pem", port: 443 })).pem).toContain("own");
    expect(await ask(baseDir, { named: "SYSTEM" })).toEqual({ pem: undefined, from: "the platform" });
    expect((await ask(baseDir, { port: 443 })).pem).toBeUndefined();
    expect((await ask(baseDir, { learned: pem("learned") })).pem).toMatch(/mesh[\s\S]*learned/);
    const bare = await home({ "var/run/secrets/kubernetes.io/serviceaccount/ca.crt": pem("cluster") });
    expect((await ask(bare)).pem).toContain("cluster");
    expect((await ask(bare, { learned: pem("learned") })).pem).not.toContain("cluster");
    await expect(ask(await tempDir())).rejects.toThrow("no root certificate");
    await expect(ask(baseDir, { named: "missing.pem" })).rejects.toThrow("missing.pem cannot be read");
  });
});
