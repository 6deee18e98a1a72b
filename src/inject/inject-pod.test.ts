import { describe, expect, it } from "vitest";
import { defaultMeshConfig } from "../config/mesh/defaults.ts";
import { injectPod } from "./inject-pod.ts";
import type { InjectionRequest, InjectionSettings } from "./injection-request.ts";
import { ownerOfPod } from "./owner.ts";
import { findContainer, findProxy, type Pod, type PodMetadata, type PodSpec } from "./pod.ts";
import { type InjectionTexts, readInjection } from "./read-injection.ts";
import { readPod } from "./read-pod.ts";

function settingsOf(texts: InjectionTexts = {}): InjectionSettings {
  const read = readInjection(texts);
  if ("faults" in read) throw new Error(read.faults.join("; "));
  return { ...read, mesh: defaultMeshConfig(), revision: "default", compliancePolicy: "" };
}

const podOf = (metadata: PodMetadata = {}, spec: PodSpec = {}): Pod => ({
  metadata,
  spec: { containers: [{ name: "web", image: "web:1" }], ...spec },
});

function inject(pod: Pod, settings = settingsOf(), more: Partial<InjectionRequest> = {}): Pod {
  const owner = ownerOfPod(pod, "shop");
  const result = injectPod(
    { pod, namespace: "shop", owner, native: true, proxyConfigs: [], variables: {}, user: { uid: 1337, gid: 1337 }, ...more },
    settings,
  );
  if ("faults" in result) throw new Error(result.faults.join("; "));
  return result.pod;
}

const envOf = (pod: Pod): Record<string, string | undefined> =>
  Object.fromEntries((findProxy(pod)?.env ?? []).map(({ name, value }) => [name, value]));

describe("injectPod", () => {
  it("carries of the mesh's settings only where istiod is", () => {
    const mesh = defaultMeshConfig();
    const plain = inject(podOf());
    mesh.trustDomain = "other.example";
    mesh.outboundTrafficPolicy = undefined;
    if (mesh.defaultConfig !== undefined) {
      mesh.defaultConfig.concurrency = 7;
      mesh.defaultConfig.drainDuration = { $typeName: "google.protobuf.Duration", seconds: 9n, nanos: 0 };
    }
    expect(inject(podOf(), { ...settingsOf(), mesh })).toEqual(plain);
    expect(envOf(plain)).toMatchObject({ ISTIO_ADDRESS: "istiod.istio-system.svc:15012", PROXY_CONFIG: "{}\n" });
  });

  it("finds the control plane of its revision and namespace", () => {
    const settings = settingsOf({ values: "revision: canary\nglobal: {istioNamespace: mesh}" });
    expect(envOf(inject(podOf(), settings))).toMatchObject({
      ISTIO_ADDRESS: "istiod-canary.mesh.svc:15012",
      CA_ADDR: "istiod-canary.mesh.svc:15012",
    });
  });

  it("keeps what another webhook added to our container between two calls", () => {
    const once = inject(podOf());
    const proxy = findProxy(once);
    if (proxy === undefined) throw new Error("no proxy");
    proxy.env = [...(proxy.env ?? []), { name: "THEIRS", value: "1" }];
    const again = inject(once);
    expect(envOf(again).THEIRS).toBe("1");
    expect(again).toEqual(once);
  });

  it.each(["sidecar", "gateway", "grpc-agent", "grpc-simple"])("changes nothing the second time with template %s", (template) => {
    const settings = settingsOf({ config: `defaultTemplates: [${template}]` });
    const once = inject(podOf(), settings);
    expect(inject(once, settings)).toEqual(once);
  });

  it("takes no pod whose mounts or ports cannot be told apart", () => {
    const podWith = (fields: object) => () => readPod({ spec: { containers: [{ name: "web", ...fields }] } });
    expect(podWith({ volumeMounts: [{ name: "v", mountPath: {} }] })).toThrow(
      "spec.containers[0].volumeMounts[0].mountPath must be a text",
    );
    expect(podWith({ ports: [{ containerPort: [] }] })).toThrow("spec.containers[0].ports[0].containerPort must be a number");
    expect(podWith({ volumeMounts: [{ name: "v", mountPath: null }], ports: [{ containerPort: null }] })).not.toThrow();
  });

  it("moves the proxy, and drops what is not injected any more, when a pod is injected in another way", () => {
    const classic = inject(podOf(), settingsOf(), { native: false });
    expect(findContainer(classic.spec.containers, "istio-proxy")).toBeDefined();
    const native = inject(classic, settingsOf({ values: "pilot: {cni: {enabled: true}}" }));
    expect(native.spec.containers?.map(({ name }) => name)).toEqual(["web"]);
    expect(native.spec.initContainers?.map(({ name }) => name)).toEqual(["istio-validation", "istio-proxy"]);
  });

  it.each(["auto", ""])(
    "puts the user's words over the template's, also the second time, and asks for no image where it is '%s'",
    (image) => {
      const ports = [{ name: "mine", containerPort: 9 }];
      const own = { name: "istio-proxy", image, ports, resources: { limits: { cpu: "3" } }, env: [{ name: "CA_ADDR", value: "mine:1" }] };
      const once = inject(podOf({}, { containers: [{ name: "web" }, own] }));
      for (const pod of [once, inject(once)]) {
        expect(findProxy(pod)).toMatchObject({ image: "istio-ts/proxyv2:latest", resources: { limits: { cpu: "3" } } });
        expect(envOf(pod).CA_ADDR).toBe("mine:1");
      }
    },
  );

  it("takes the user's words of a native sidecar for a classic one, also the second time", () => {
    const own = { name: "istio-proxy", image: "auto", restartPolicy: "Always", securityContext: { runAsUser: 4242 } };
    const once = inject(podOf({}, { initContainers: [own] }), settingsOf(), { native: false });
    expect(findContainer(once.spec.containers, "istio-proxy")).toMatchObject({ securityContext: { runAsUser: 4242 } });
    expect(findContainer(once.spec.containers, "istio-proxy")).not.toHaveProperty("restartPolicy");
    expect(once.spec.initContainers?.map(({ name }) => name)).toEqual(["istio-init"]);
    expect(inject(once, settingsOf(), { native: false })).toEqual(once);
  });

  it("tells interception of the user's uid for the proxy, also the second time, and lets the proxy be root where TPROXY needs it", () => {
    const own = { name: "istio-proxy", image: "auto", securityContext: { runAsUser: 4242 } };
    const spec = { containers: [{ name: "web", image: "web:1" }, own] };
    const once = inject(podOf({ annotations: { "sidecar.istio.io/interceptionMode": "TPROXY" } }, spec));
    const init = findContainer(once.spec.initContainers, "istio-init");
    expect(init?.args?.slice(init.args.indexOf("-u"), init.args.indexOf("-u") + 2)).toEqual(["-u", "4242"]);
    expect(findProxy(once)?.securityContext).toMatchObject({ runAsUser: 0 });
    expect(inject(once)).toEqual(once);
  });

  it("writes no empty text, which Kubernetes would not keep", () => {
    const pod = inject(podOf({}, { containers: [{ name: "istio-proxy", image: "auto" }] }));
    expect(findProxy(pod)?.env?.find(({ name }) => name === "ISTIO_META_APP_CONTAINERS")).toEqual({ name: "ISTIO_META_APP_CONTAINERS" });
  });

  it("sends probes to the agent, with named ports looked up, and keeps those of exec", () => {
    const web = {
      name: "web",
      ports: [{ name: "http", containerPort: 8080 }],
      readinessProbe: { httpGet: { port: "http", path: "/r", scheme: "HTTPS" }, timeoutSeconds: 2 },
      livenessProbe: { exec: { command: ["true"] } },
      startupProbe: { grpc: { port: 9000 } },
      lifecycle: { preStop: { httpGet: { port: 8080, path: "/bye" } } },
    };
    const pod = inject(podOf({}, { containers: [web] }));
    expect(findContainer(pod.spec.containers, "web")).toMatchObject({
      readinessProbe: { httpGet: { port: 15_020, path: "/app-health/web/readyz", scheme: "HTTP" }, timeoutSeconds: 2 },
      livenessProbe: { exec: { command: ["true"] } },
      startupProbe: { httpGet: { port: 15_020, path: "/app-health/web/startupz" } },
      lifecycle: { preStop: { httpGet: { port: 15_020, path: "/app-lifecycle/web/prestopz" } } },
    });
    expect(JSON.parse(envOf(pod).ISTIO_KUBE_APP_PROBERS ?? "")).toEqual({
      "/app-health/web/readyz": { httpGet: { path: "/r", port: 8080, scheme: "HTTPS" }, timeoutSeconds: 2 },
      "/app-health/web/startupz": { grpc: { port: 9000 } },
      "/app-lifecycle/web/prestopz": { httpGet: { path: "/bye", port: 8080 } },
    });
  });

  it("tells the agent where the application's metrics are", () => {
    const pod = inject(podOf({ annotations: { "prometheus.io/port": "9090", "prometheus-io/path": "/m" } }));
    expect(pod.metadata.annotations).toMatchObject({ "prometheus.io/port": "15020", "prometheus.io/path": "/stats/prometheus" });
    expect(pod.metadata.annotations).not.toHaveProperty("prometheus-io/path");
    expect(JSON.parse(envOf(pod).ISTIO_PROMETHEUS_ANNOTATIONS ?? "")).toEqual({ scrape: "", path: "/m", port: "9090" });
    expect(() => inject(podOf({ annotations: { "prometheus.io/port": "15090" } }))).toThrow(/it is the proxy's/);
  });

  it("takes cluster and network from the address of the webhook, and the network of a label before that", () => {
    const variables = { ISTIO_META_CLUSTER_ID: "east", ISTIO_META_NETWORK: "n1" };
    const pod = inject(podOf(), settingsOf(), { variables });
    expect(envOf(pod)).toMatchObject(variables);
    expect(pod.metadata.labels?.["topology.istio.io/network"]).toBe("n1");
    const labelled = inject(podOf({ labels: { "topology.istio.io/network": "n2" } }), settingsOf(), { variables });
    expect(envOf(labelled).ISTIO_META_NETWORK).toBe("n2");
  });

  it("refuses annotations that would be wrong on a command line, each with its name", () => {
    const annotations = {
      "sidecar.istio.io/interceptionMode": "SOMEHOW",
      "traffic.sidecar.istio.io/excludeInterfaces": "eth0; rm -rf /",
      "sidecar.istio.io/proxyCPU": "lots",
      "proxy.istio.io/config": "concurrency: two",
      "proxy.istio.io/overrides": "mine",
      "sidecar.istio.io/userVolume": '{"v":"x"}',
      "sidecar.istio.io/userVolumeMount": '{"v":{}}',
    };
    const refused = (): Pod => inject(podOf({ annotations }));
    for (const name of Object.keys(annotations)) expect(refused).toThrow(name);
  });

  it("takes of numbers, ranges and quantities what Istio takes, and checks more of what would fail later", () => {
    const table: readonly (readonly [name: string, taken: readonly string[], refused: readonly string[]])[] = [
      ["sidecar.istio.io/proxyCPU", ["0", "1e3", "2k", "1.5"], ["100m ", "", "1gi"]],
      ["status.sidecar.istio.io/port", ["0", " 80 ", "080"], ["1,2", "", "65536", "-1"]],
      ["traffic.sidecar.istio.io/includeInboundPorts", ["*", "", "80, 81", "000080"], ["80,", "a", "*,80"]],
      ["traffic.sidecar.istio.io/includeOutboundPorts", ["443", ""], ["*", "x"]],
      ["proxy.istio.io/config", ["", "{}", "concurrency: '2'"], ["concurrency: 1\nconcurrency: 2", "[a]", "x"]],
      [
        "traffic.sidecar.istio.io/includeOutboundIPRanges",
        ["*", "", "10.0.0.1/8,fd00::/8"],
        ["10.0.0.1", "10.0.0.0/8, 11.0.0.0/8", "1.2.3.4/08", "fe80::1%eth0/64", "010.0.0.0/8"],
      ],
    ];
    for (const [name, taken, refused] of table) {
      for (const value of taken) expect(() => inject(podOf({ annotations: { [name]: value } })), `${name}: ${value}`).not.toThrow();
      for (const value of refused) expect(() => inject(podOf({ annotations: { [name]: value } })), `${name}: ${value}`).toThrow(name);
    }
  });

  it("leaves out fields of the pod's ProxyConfig that nobody knows, and warns", () => {
    const config = "concurrency: 2\nconcurency: 3\ntracing: {zipkin: {address: 'z:1', port: 2}}";
    const pod = podOf({ annotations: { "proxy.istio.io/config": config } });
    const owner = ownerOfPod(pod, "shop");
    const user = { uid: 1337, gid: 1337 };
    const result = injectPod({ pod, namespace: "shop", owner, native: true, proxyConfigs: [], variables: {}, user }, settingsOf());
    if ("faults" in result) throw new Error(result.faults.join("; "));
    expect(result.warnings).toEqual([
      'annotation proxy.istio.io/config: concurency: ProxyConfig has no field "concurency"',
      'annotation proxy.istio.io/config: tracing.zipkin.port: Zipkin has no field "port"',
    ]);
    expect(JSON.parse(envOf(result.pod).PROXY_CONFIG ?? "")).toEqual({ concurrency: 2, tracing: { zipkin: { address: "z:1" } } });
  });

  it("takes volumes and mounts of users by name and as lists", () => {
    const volumes = (userVolume: string, userVolumeMount: string): readonly unknown[] => {
      const pod = inject(
        podOf({ annotations: { "sidecar.istio.io/userVolume": userVolume, "sidecar.istio.io/userVolumeMount": userVolumeMount } }),
      );
      return [pod.spec.volumes?.filter(({ name }) => name === "v"), findProxy(pod)?.volumeMounts?.filter(({ name }) => name === "v")];
    };
    const wanted = [[{ name: "v", emptyDir: {} }], [{ name: "v", mountPath: "/v" }]];
    expect(volumes('{"v":{"emptyDir":{}}}', '{"v":{"mountPath":"/v"}}')).toEqual(wanted);
    expect(volumes('[{"name":"v","emptyDir":{}}]', '[{"name":"v","mountPath":"/v"}]')).toEqual(wanted);
    expect(volumes("[]", "null")).toEqual([[], []]);
    expect(volumes("[]", '{"v":{"mountpath":"/v","readonly":true}}')).toEqual([[], [{ name: "v", mountPath: "/v", readOnly: true }]]);
  });

  it("takes no container for its own that an earlier template only changed", () => {
    const once = inject(podOf({ annotations: { "inject.istio.io/templates": "grpc-agent" } }));
    once.metadata.annotations = { ...once.metadata.annotations, "inject.istio.io/templates": "sidecar" };
    expect(inject(once).spec.containers?.map(({ name }) => name)).toEqual(["web"]);
  });

  it("sends probes where the pod's own ProxyConfig has the agent listen, and knows a number in quotes for a port", () => {
    const web = { name: "web", readinessProbe: { httpGet: { port: "80", path: "/own" } } };
    const pod = inject(podOf({ annotations: { "proxy.istio.io/config": "statusPort: 16000" } }, { containers: [web] }));
    expect(findContainer(pod.spec.containers, "web")?.readinessProbe).toMatchObject({ httpGet: { port: 16_000 } });
    expect(JSON.parse(envOf(pod).ISTIO_KUBE_APP_PROBERS ?? "")).toEqual({
      "/app-health/web/readyz": { httpGet: { path: "/own", port: 80 } },
    });
  });

  it("knows a probe that is sent to the agent by its path, whatever the agent's port", () => {
    const web = { name: "web", readinessProbe: { httpGet: { port: 15_020, path: "/own" } } };
    const once = inject(podOf({ annotations: { "status.sidecar.istio.io/port": "1234" } }, { containers: [web] }));
    expect(inject(once)).toEqual(once);
  });

  it("tells a gateway nothing that is about an application beside it", () => {
    const values = "global: {proxy: {outlierLogPath: /dev/stdout}}";
    const labels = { "service.istio.io/workload-name": "other" };
    const mesh = defaultMeshConfig();
    mesh.inboundTrafficPolicy = { $typeName: "istio.mesh.v1alpha1.MeshConfig.InboundTrafficPolicy", mode: 1 };
    const run = (templates: string): Pod =>
      inject(podOf({ name: "edge", labels, annotations: { "inject.istio.io/templates": templates } }), { ...settingsOf({ values }), mesh });
    const [sidecar, gateway] = [run("sidecar"), run("gateway")];
    expect(findProxy(sidecar)?.args).toContain("--outlierLogPath=/dev/stdout");
    expect(envOf(sidecar)).toMatchObject({ REWRITE_PROBE_LEGACY_LOCALHOST_DESTINATION: "true", ISTIO_META_WORKLOAD_NAME: "other" });
    expect(findProxy(gateway)?.args).not.toContain("--outlierLogPath=/dev/stdout");
    expect(envOf(gateway)).not.toHaveProperty("REWRITE_PROBE_LEGACY_LOCALHOST_DESTINATION");
    expect(envOf(gateway).ISTIO_META_WORKLOAD_NAME).toBe("edge");
  });

  it("refuses what a template gives where that is no part of a pod, and leaves out what it says nothing in", () => {
    const settings = settingsOf({ config: "templates:\n  none: 'spec: null'\n  odd: 'spec: {containers: all}'\n  slip: '{{ .Specs }}'" });
    const run = (name: string): Pod => inject(podOf({ annotations: { "inject.istio.io/templates": name } }), settings);
    expect(run("none").spec.containers).toEqual([{ name: "web", image: "web:1" }]);
    expect(() => run("odd")).toThrow(/template "odd" gives is no pod: spec.containers must be a list/);
    expect(() => run("slip")).toThrow(/template "slip": line 1: there is no .Specs; there are TypeMeta/);
  });

  it("uses templates of users, several of them, and says which there are", () => {
    const config =
      "templates:\n  extra: |\n    metadata: {labels: {owner: '{{ .DeploymentMeta.Name }}'}}\n  bad: '{{ nosuch }}'\naliases: {both: [sidecar, extra]}";
    const settings = settingsOf({ config });
    const pod = inject(podOf({ name: "web", annotations: { "inject.istio.io/templates": "both" } }), settings);
    expect(pod.metadata.labels).toMatchObject({ owner: "web", "security.istio.io/tlsMode": "istio" });
    const twice = settingsOf({ config: 'templates: {twice: "spec:\\n  volumes: [{\\n    name: a, name: b, emptyDir: {}\\n  }]"}' });
    expect(inject(podOf({ annotations: { "inject.istio.io/templates": "twice" } }), twice).spec.volumes).toEqual([
      { name: "b", emptyDir: {} },
    ]);
    expect(() => inject(podOf({ annotations: { "inject.istio.io/templates": "nope" } }), settings)).toThrow(
      /there is no template "nope"; there are sidecar, gateway, grpc-agent, grpc-simple, extra, bad/,
    );
    expect(() => inject(podOf({ annotations: { "inject.istio.io/templates": "bad" } }), settings)).toThrow(
      /template "bad": line 1: there is no function nosuch/,
    );
  });

  it("takes nothing of a configuration that is wrong", () => {
    expect(readInjection({ config: "templates: {t: '{{ if }}'}" })).toMatchObject({
      faults: [expect.stringMatching(/template "t": line 1/)],
    });
    expect(readInjection({ values: "global: {hub: [1]}" })).toMatchObject({ faults: ["values: global.hub must be a text"] });
    expect(readInjection({ config: "policy: maybe" })).toMatchObject({ faults: [expect.stringMatching(/policy/)] });
    expect(readInjection({ values: "a: [" })).toMatchObject({ faults: [expect.stringMatching(/values: line/)] });
  });
});
