import { mkdir, mkdtemp, rm, symlink, truncate, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { MeshConfig_OutboundTrafficPolicy_Mode } from "../../gen/istio/mesh/v1alpha1/mesh_config_pb.js";
import type { Env } from "../../settings/read-settings.ts";
import { type LoadedMesh, loadMesh } from "./load-mesh.ts";
import { meshProblemsSentence, meshProblemText } from "./mesh-problems.ts";

let base = "";
beforeEach(async () => {
  base = await mkdtemp(join(tmpdir(), "mesh-"));
});
afterEach(() => rm(base, { recursive: true, force: true, maxRetries: 20, retryDelay: 50 }));

const put = async (path: string, content: string | Uint8Array): Promise<void> => {
  await mkdir(dirname(join(base, path)), { recursive: true });
  await writeFile(join(base, path), content);
};

async function good(env: Env = {}): Promise<LoadedMesh & { warnings: readonly string[]; files: readonly string[] }> {
  const load = await loadMesh(base, env);
  if (!load.ok) throw new Error(load.problems.map(meshProblemText).join("\n"));
  return { ...load.config, warnings: load.warnings.map(relativeText), files: load.files };
}

/** The problems as a user sees them, with the temporary directory cut off. */
async function faults(env: Env = {}): Promise<readonly string[]> {
  const load = await loadMesh(base, env);
  return load.ok ? [] : load.problems.map(relativeText);
}

const relativeText = (problem: Parameters<typeof meshProblemText>[0]): string => meshProblemText(problem).replaceAll(`${base}/`, "");

describe("loadMesh", () => {
  it("takes all defaults where there is no file", async () => {
    const { process, mesh, networks, files, warnings } = await good();
    expect(process).toEqual({
      listen: {
        grpcAddr: "127.0.0.1:15010",
        secureGrpcAddr: ":15012",
        legacyGrpcAddr: ":15011",
        httpsAddr: ":15017",
        httpAddr: ":8080",
        monitoringAddr: ":15014",
      },
      services: { xds: true, ca: true, inject: true, validate: true, mcp: true, operator: true },
      ca: { address: "" },
      tokenIssuers: [],
      vault: {
        address: undefined,
        mount: "secret",
        path: "istio/{namespace}/{name}",
        namespace: "",
        tokenFile: undefined,
        caCertificates: undefined,
      },
      sidecar: false,
      namespaces: [],
      clusterWrites: false,
      env: {},
      configSources: [
        { scheme: "fs", target: join(base, "etc/istio/conf"), address: "fs://./etc/istio/conf", assumed: true },
        { scheme: "k8s", target: "", address: "k8s://", assumed: true },
      ],
    });
    expect(mesh.trustDomain).toBe("cluster.local");
    expect(networks.networks).toEqual({});
    expect(warnings).toEqual([]);
    expect(files).toEqual([join(base, "etc/istio/mesh.yaml"), join(base, "etc/istio/networks.yaml")]);
  });

  it("takes an empty file, or one of comments, as no file", async () => {
    await put("etc/istio/mesh.yaml", "# nothing yet\n");
    expect((await good()).mesh.rootNamespace).toBe("istio-system");
  });

  it("knows the defaults of a pod", async () => {
    const { process } = await good({ KUBERNETES_SERVICE_HOST: "10.0.0.1" });
    expect([process.listen.grpcAddr, process.clusterWrites]).toEqual(["", true]);
  });

  it("reads MeshConfig in both spellings, Go durations, and the process's own fields", async () => {
    await put(
      "etc/istio/mesh.yaml",
      `trustDomain: mesh.example
connect_timeout: 1500ms
outboundTrafficPolicy: {mode: REGISTRY_ONLY}
defaultConfig:
  drainDuration: 1m30s
  proxyMetadata: {A: "1"}
ca: {address: ca.example:15012}
listen: {httpAddr: 127.0.0.1:0, grpcAddr: ""}
services: {ca: false}
namespaces: [shop]
tokenIssuers:
- issuer: https://id.example.com
  jwksUri: https://id.example.com/keys
  audiences: [istio-ca]
  identity: {namespace: ns, serviceAccount: sa}
configSources:
- address: fs:///srv/conf
- address: fs://./more
- address: mcp://central:15012
env:
  PILOT_DEBOUNCE_AFTER: 5ms
  ISTIO_GPRC_MAXSTREAMS: 10
  PILOT_ENABLE_EDS_FOR_HEADLESS_SERVICES: true
`,
    );
    const { process, mesh, settings, warnings } = await good();
    expect(warnings).toEqual([]);
    expect(mesh.trustDomain).toBe("mesh.example");
    expect(mesh.connectTimeout).toMatchObject({ seconds: 1n, nanos: 500_000_000 });
    expect(mesh.outboundTrafficPolicy?.mode).toBe(MeshConfig_OutboundTrafficPolicy_Mode.REGISTRY_ONLY);
    expect(mesh.defaultConfig?.drainDuration?.seconds).toBe(90n);
    expect(mesh.defaultConfig).toMatchObject({ statusPort: 15020, proxyMetadata: { A: "1" } });
    expect(process.ca.address).toBe("ca.example:15012");
    expect(process.listen).toMatchObject({ httpAddr: "127.0.0.1:0", grpcAddr: "", secureGrpcAddr: ":15012" });
    expect(process.services).toMatchObject({ ca: false, xds: true });
    expect(process.tokenIssuers[0]).toMatchObject({ issuer: "https://id.example.com", audiences: ["istio-ca"], jwksFile: undefined });
    expect(process.configSources.map(({ scheme, target }) => `${scheme} ${target}`)).toEqual([
      "fs /srv/conf",
      `fs ${join(base, "more")}`,
      "xds central:15012",
    ]);
    expect(settings).toMatchObject({ debounceAfterMs: 5, maxStreams: 10, edsForHeadless: true });
  });

  it("lets the environment win: listen addresses, settings and trust domain", async () => {
    await put("etc/istio/mesh.yaml", "listen: {httpAddr: ':1'}\ntrustDomain: a\nenv: {PILOT_DEBOUNCE_AFTER: 1s, MONITORING_ADDR: ':2'}\n");
    const { process, mesh, settings } = await good({ HTTP_ADDR: ":3", TRUST_DOMAIN: "b", PILOT_DEBOUNCE_AFTER: "2s" });
    expect(process.listen).toMatchObject({ httpAddr: ":3", monitoringAddr: ":2" });
    expect([mesh.trustDomain, settings.debounceAfterMs]).toEqual(["b", 2000]);
  });

  it("puts in what headers of providers leave to the environment", async () => {
    const headers = "[{name: a, value: said}, {name: b, envName: TOKEN}, {name: c, envName: NOT_SET}]";
    const otel = "service: o.example, port: 4317";
    const sampler = `dynatraceSampler: {tenant: t, clusterId: 1, httpService: {service: o.example, port: 80, http: {path: /s, headers: ${headers}}}}`;
    await put(
      "etc/istio/mesh.yaml",
      `extensionProviders:
- {name: zipkin, zipkin: {service: z.example, port: 9411, headers: ${headers}}}
- {name: grpc, opentelemetry: {${otel}, grpc: {initialMetadata: ${headers}}}}
- {name: http, opentelemetry: {${otel}, http: {path: /v1/traces, headers: ${headers}}, ${sampler}}}
`,
    );
    const { mesh } = await good({ TOKEN: "of-the-process" });
    const filled = JSON.stringify(mesh.extensionProviders).match(/"name":"[abc]","headerValue":\{[^}]*\}/g) ?? [];
    const values = filled.map((one) => /"case":"value","value":"([^"]*)"/.exec(one)?.[1]);
    expect(values).toEqual(Array.from({ length: 4 }, () => ["said", "of-the-process", ""]).flat());
  });

  it("merges includes in order: maps joined, lists and values replaced, null back to the default", async () => {
    await put(
      "etc/istio/mesh.yaml",
      `include: [one.yaml, sub/two.yaml]
trustDomain: zero
root_namespace: zero
ingressClass: zero
listen: {grpcAddr: ":1", httpAddr: ":1"}
defaultServiceExportTo: ["."]
defaultConfig: {proxyMetadata: {A: "0", B: "0"}, tracing: {zipkin: {address: "z:1"}}}
extensionProviders: [{name: x, zipkin: {service: z.example, port: 1}}, {name: w, prometheus: {}}]
`,
    );
    await put(
      "etc/istio/one.yaml",
      'trustDomain: one\nlisten: {httpAddr: ":2"}\nrootNamespace: one\ndefaultServiceExportTo: ["*", shop]\n',
    );
    await put(
      "etc/istio/sub/two.yaml",
      'trust_domain: two\ningressClass: null\ndefaultConfig: {proxyMetadata: {B: "2"}, tracing: {datadog: {address: "d:1"}}}\nextensionProviders: [{name: x, prometheus: {}}]\n',
    );
    const { process, mesh, files } = await good();
    expect(mesh).toMatchObject({ trustDomain: "two", rootNamespace: "one", ingressClass: "istio", defaultServiceExportTo: ["*", "shop"] });
    expect(process.listen).toMatchObject({ grpcAddr: ":1", httpAddr: ":2" });
    expect(mesh.defaultConfig?.proxyMetadata).toEqual({ A: "0", B: "2" });
    expect(mesh.defaultConfig?.tracing?.tracer.case).toBe("datadog");
    expect(mesh.extensionProviders.map(({ name, provider }) => `${name}:${provider.case}`)).toEqual([
      "prometheus:prometheus",
      "stackdriver:stackdriver",
      "envoy:envoyFileAccessLog",
      "w:prometheus",
      "x:prometheus",
    ]);
    expect(files.map((file) => file.replace(`${base}/etc/istio/`, ""))).toEqual(["mesh.yaml", "one.yaml", "sub/two.yaml", "networks.yaml"]);
  });

  it("reads networks from networks.yaml over those in mesh.yaml", async () => {
    await put("etc/istio/mesh.yaml", "meshNetworks: {networks: {a: {gateways: [{address: 1.1.1.1, port: 1}]}, b: {}}}\n");
    await put("etc/istio/networks.yaml", "networks: {a: {gateways: [{address: 2.2.2.2, port: 2}]}}\n");
    const { networks } = await good();
    expect(Object.keys(networks.networks)).toEqual(["a", "b"]);
    expect(networks.networks.a?.gateways[0]?.gw.value).toBe("2.2.2.2");
  });

  it("warns of a setting nobody knows and of a provider that cannot work, and goes on", async () => {
    await put("etc/istio/mesh.yaml", "extensionProviders: [{name: x, zipkin: {service: z.example}}]\nenv:\n  PILOT_NO_SUCH: 1\n");
    expect((await good()).warnings).toEqual([
      "etc/istio/mesh.yaml:3: env.PILOT_NO_SUCH: is no setting of this control plane and is ignored",
      "etc/istio/mesh.yaml:1: extensionProviders[0].zipkin.port: port 0 is outside 1 to 65535",
    ]);
  });
});

describe("loadMesh refuses, with file, line and field,", () => {
  const table: readonly [what: string, files: Readonly<Record<string, string>>, want: readonly string[]][] = [
    [
      "an unknown field",
      { "mesh.yaml": "trustDomain: a\n\nnoSuchField: 1\n" },
      ['mesh.yaml:3: noSuchField: MeshConfig has no field "noSuchField"'],
    ],
    [
      "an unknown field further down",
      { "mesh.yaml": "defaultConfig:\n  statusPort: 1\n  nope: 1\n" },
      ['mesh.yaml:3: defaultConfig.nope: ProxyConfig has no field "nope"'],
    ],
    [
      "a wrong type",
      { "mesh.yaml": "trustDomain: a\nproxyListenPort: [1]\n" },
      [/^mesh.yaml:2: proxyListenPort: must be .*, not a list$/.source],
    ],
    [
      "an unknown field of the process",
      { "mesh.yaml": "listen:\n  grpc: x\n" },
      ['mesh.yaml:2: listen.grpc: there is no field "grpc" here'],
    ],
    [
      "a wrong type of the process",
      { "mesh.yaml": "services:\n\n  ca: 1\n" },
      ["mesh.yaml:3: services.ca: must be true or false, not a number"],
    ],
    ["a bad address", { "mesh.yaml": "listen: {httpAddr: 8080}\n" }, ["mesh.yaml:1: listen.httpAddr: must be a text, not a number"]],
    [
      "a bad setting",
      { "mesh.yaml": "env:\n  PILOT_ENABLE_IP_AUTOALLOCATE: maybe\n" },
      ['mesh.yaml:2: env.PILOT_ENABLE_IP_AUTOALLOCATE: "maybe" is neither true nor false'],
    ],
    [
      "a semantic fault in the file that wrote it",
      { "mesh.yaml": "include: [b.yaml]\ntrustDomain: a\n", "b.yaml": "\ntrust_domain: a/b\n" },
      ['b.yaml:2: trustDomain: "a/b" is not a trust domain: its part "a/b" is not a DNS label'],
    ],
    [
      "every fault of every file",
      { "mesh.yaml": "include: [b.yaml]\nx: 1\n", "b.yaml": "w: 1\n", "networks.yaml": "networks:\n  n1: {z: 1}\n" },
      [
        'mesh.yaml:2: x: MeshConfig has no field "x"',
        'b.yaml:1: w: MeshConfig has no field "w"',
        'networks.yaml:2: networks.n1.z: Network has no field "z"',
      ],
    ],
    [
      "a bad network",
      { "networks.yaml": "networks:\n  n1:\n    endpoints:\n    - fromRegistry: a.b\n" },
      ['networks.yaml:4: networks.n1.endpoints[0].fromRegistry: "a.b" is not the name of a registry'],
    ],
    [
      "a source of unknown kind",
      { "mesh.yaml": "configSources:\n- address: nfs://x\n" },
      [/^mesh.yaml:2: configSources\[0\].address: "nfs:\/\/x" does not begin/.source],
    ],
    [
      "two key sources of an issuer",
      { "mesh.yaml": "tokenIssuers:\n- issuer: i\n  jwks: '{\"keys\": []}'\n  jwksFile: f\n" },
      ["mesh.yaml:3: tokenIssuers[0].jwks: cannot be set together with jwksFile"],
    ],
    ["an issuer without name", { "mesh.yaml": "tokenIssuers:\n- jwksFile: k\n" }, ["mesh.yaml:2: tokenIssuers[0].issuer: must be set"]],
    [
      "keys of an issuer that are none",
      { "mesh.yaml": "tokenIssuers:\n- issuer: i\n  jwks: nonsense\n" },
      ["mesh.yaml:3: tokenIssuers[0].jwks: is no JSON Web Key Set: that is a JSON object with a list `keys`"],
    ],
    ["a missing include", { "mesh.yaml": "include:\n- no.yaml\n" }, ['mesh.yaml:2: include[0]: "no.yaml" is not there']],
    [
      "an include outside",
      { "mesh.yaml": "include:\n- ../../x.yaml\n" },
      [/^mesh.yaml:2: include\[0\]: "..\/..\/x.yaml" is outside /.source],
    ],
    [
      "an absolute include outside",
      { "mesh.yaml": "include: [/etc/passwd]\n" },
      [/^mesh.yaml:1: include\[0\]: "\/etc\/passwd" is outside /.source],
    ],
    [
      "an include that includes",
      { "mesh.yaml": "include: [b.yaml]\n", "b.yaml": "include: [c.yaml]\n" },
      ["b.yaml:1: include: only mesh.yaml itself may include files"],
    ],
    ["includes that are no list", { "mesh.yaml": "include: {a: b}\n" }, ["mesh.yaml:1: include: must be a list of file names"]],
    ["malformed YAML", { "mesh.yaml": "a: 1\nb: [1\n" }, [/^mesh.yaml:\d: not valid YAML: /.source]],
    ["a list instead of fields", { "mesh.yaml": "- a\n" }, ["mesh.yaml:1: must be a map of fields"]],
    ["two documents", { "mesh.yaml": "trustDomain: a\n---\ntrustDomain: b\n" }, ["mesh.yaml:3: holds more than one document"]],
    [
      "a field in both spellings",
      { "mesh.yaml": "trustDomain: a\ntrust_domain: b\n" },
      ["mesh.yaml:2: trust_domain: is also given as trustDomain"],
    ],
  ];
  for (const [what, files, want] of table) {
    it(what, async () => {
      for (const [name, text] of Object.entries(files)) await put(`etc/istio/${name}`, text);
      const found = (await faults()).map((text) => text.replace(/^etc\/istio\//, ""));
      expect(found).toEqual(want.map((text) => (text.startsWith("^") ? expect.stringMatching(text) : text)));
    });
  }

  it("a bad variable of the environment", async () => {
    expect(await faults({ PILOT_DEBOUNCE_MAX: "soon" })).toEqual([
      'environment variable PILOT_DEBOUNCE_MAX: "soon" is not a duration such as 100ms, 5s or 1h30m',
    ]);
  });

  it("a trust domain of the environment that is none, without blaming a file", async () => {
    await put("etc/istio/mesh.yaml", "trustDomain: good\n");
    expect(await faults({ TRUST_DOMAIN: "a/b" })).toEqual([expect.stringMatching(/^setting TRUST_DOMAIN: "a\/b" is not a trust domain/)]);
  });

  it("a link that leads outside", async () => {
    await put("secret.yaml", "trustDomain: stolen\n");
    await put("etc/istio/mesh.yaml", "include: [link.yaml]\n");
    await symlink(join(base, "secret.yaml"), join(base, "etc/istio/link.yaml"));
    expect(await faults()).toEqual([expect.stringMatching(/^etc\/istio\/mesh.yaml:1: include\[0\]: "link.yaml" leads outside /)]);
  });

  it("a cyclic link", async () => {
    await put("etc/istio/mesh.yaml", "include: [a.yaml]\n");
    await symlink("b.yaml", join(base, "etc/istio/a.yaml"));
    await symlink("a.yaml", join(base, "etc/istio/b.yaml"));
    expect(await faults()).toEqual([expect.stringMatching(/mesh.yaml:1: include\[0\]: .*symbolic link/)]);
  });

  it("an alias bomb, at once", async () => {
    const levels = Array.from({ length: 12 }, (_, i) => `l${i + 1}: &l${i + 1} [${Array(10).fill(`*l${i}`).join(",")}]`);
    await put("etc/istio/mesh.yaml", `l0: &l0 x\n${levels.join("\n")}\n`);
    const before = process.cpuUsage();
    expect(await faults()).toEqual([expect.stringMatching(/^etc\/istio\/mesh.yaml:1: stands for more than/)]);
    expect(process.cpuUsage(before).user / 1_000).toBeLessThan(1_000);
  });

  it("a binary file", async () => {
    await put("etc/istio/mesh.yaml", new Uint8Array([0x7f, 0x45, 0x4c, 0x46, 0, 1, 2]));
    expect(await faults()).toEqual(["etc/istio/mesh.yaml: is binary, not text"]);
    await put("etc/istio/mesh.yaml", new Uint8Array([0x61, 0xff, 0xfe]));
    expect(await faults()).toEqual(["etc/istio/mesh.yaml: is not UTF-8 text"]);
  });

  it("a file of 50 MB, without reading it", async () => {
    await put("etc/istio/networks.yaml", "");
    await truncate(join(base, "etc/istio/networks.yaml"), 50 * 1024 * 1024);
    expect(await faults()).toEqual(["etc/istio/networks.yaml: is 50.0 MB; at most 4 MB are read"]);
  });

  it("at most fifty faults of a file full of them, at once", async () => {
    await put("etc/istio/mesh.yaml", Array.from({ length: 20_000 }, (_, i) => `field${i}: 1\n`).join(""));
    const before = process.cpuUsage();
    expect(await faults()).toHaveLength(50);
    expect(process.cpuUsage(before).user / 1_000).toBeLessThan(3_000);
  });

  it("a directory in place of the file", async () => {
    await mkdir(join(base, "etc/istio/mesh.yaml"), { recursive: true });
    expect(await faults()).toEqual(["etc/istio/mesh.yaml: is not a regular file"]);
  });
});

describe("meshProblemsSentence", () => {
  it("says the first fault and how many more there are", async () => {
    await put("etc/istio/mesh.yaml", "noSuch: 1\n");
    const one = await loadMesh(base, {});
    expect(one.ok ? "" : meshProblemsSentence(one.problems)).toBe(
      `${base}/etc/istio/mesh.yaml:1: noSuch: MeshConfig has no field "noSuch"`,
    );
    await put("etc/istio/mesh.yaml", "noSuch: 1\nnorThis: 1\nnorThat: 1\n");
    const three = await loadMesh(base, {});
    expect(three.ok ? "" : meshProblemsSentence(three.problems)).toMatch(/"noSuch" \(and 2 more problems\)$/);
  });
});

describe("the hash of a load", () => {
  it("changes with content and presence only", async () => {
    const hash = async (): Promise<string> => (await loadMesh(base, {})).hash;
    const none = await hash();
    await put("etc/istio/mesh.yaml", "trustDomain: a\n");
    const first = await hash();
    await put("etc/istio/mesh.yaml", "trustDomain: a\n");
    expect(await hash()).toBe(first);
    await put("etc/istio/mesh.yaml", "trustDomain: b\n");
    expect(new Set([none, first, await hash()]).size).toBe(3);
  });
});
