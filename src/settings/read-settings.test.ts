import { describe, expect, it } from "vitest";
import { readSettings, unknownSettings } from "./read-settings.ts";
import { readValue } from "./read-value.ts";
import type { SettingDef, SettingType } from "./setting-def.ts";
import { SETTINGS } from "./table.ts";

describe("readSettings", () => {
  it("gives every default where nothing is set", () => {
    const { settings, faults } = readSettings({});
    expect(faults).toEqual([]);
    expect(settings).toEqual({
      home: "",
      podName: "",
      externalCa: "",
      k8sSigner: "",
      certSignerDomain: "",
      externalIstiod: false,
      remoteCredentials: true,
      remoteWorkloadEntries: true,
      podNamespace: "istio-system",
      clusterId: "Kubernetes",
      nativeSidecars: "auto",
      injectEnabled: true,
      platform: "",
      compliancePolicy: "",
      injectorName: "istio-sidecar-injector",
      validatorName: undefined,
      webhookUrl: "",
      revision: "",
      sharedMeshConfig: "",
      statusWrites: true,
      distributionTracking: true,
      statusIntervalMs: 500,
      statusPerSecond: 20,
      statusBurst: 100,
      statusWorkers: 100,
      tokenAudiences: "istio-ca",
      kubeconfig: "",
      kubeConfig: "",
      kubeContext: "",
      trustDomain: "",
      grpcAddr: undefined,
      secureGrpcAddr: undefined,
      legacyGrpcAddr: undefined,
      httpsAddr: undefined,
      httpAddr: undefined,
      monitoringAddr: undefined,
      customHosts: "",
      workloadCertTtlMs: 86_400_000,
      maxWorkloadCertTtlMs: 7_776_000_000,
      rootCertTtlMs: 315_360_000_000,
      vaultRefreshMs: 30_000,
      debugHosts: "",
      trustBundles: false,
      publishRevoked: true,
      trustedNodeAccounts: "",
      trustedControlPlanes: "",
      autoRegistration: true,
      workloadHealthChecks: true,
      workloadEntryGraceMs: 10_000,
      debounceAfterMs: 100,
      debounceMaxMs: 10_000,
      keepaliveMs: 30_000,
      keepaliveTimeoutMs: 10_000,
      maxRequestBytes: 4_194_304,
      maxStreams: 20_000,
      admittedPerSecond: 0,
      xdsSendTimeoutMs: 300_000,
      memoryLimitBytes: 0,
      clusterDomain: "cluster.local",
      certProvider: "istiod",
      edsForHeadless: false,
      sniffOutbound: true,
      sniffInbound: true,
      defaultRequestTimeoutMs: 0,
      http10: false,
      resolveGateways: true,
      envoyFilterStats: false,
      mongoFilter: true,
      redisFilter: false,
      persistentSessions: false,
      sessionLabel: "istio.io/persistent-session",
      sessionHeaderLabel: "istio.io/persistent-session-header",
      drainingLabel: "istio.io/draining",
      quicListeners: false,
      dualStack: false,
      tlsOnSidecarIngress: false,
      traceSampling: 1,
      severalAuthorizers: false,
      remoteJwks: "false",
      keyRefreshMs: 1_200_000,
      blockedKeyRanges: "",
      allowedKeyRanges: "",
      httpProxy: "",
      httpsProxy: "",
      noProxy: "",
      autoAllocateAddresses: true,
      autoAllocateIpv4: "240.240.0.0/16",
      autoAllocateIpv6: "2001:2::/48",
      maxConfigFileBytes: 16_777_216,
      envoyPath: "",
      logLevel: "info",
      logJson: false,
    });
    expect(Object.isFrozen(settings)).toBe(true);
  });

  it("lets the environment win over mesh.yaml, and mesh.yaml over the default", () => {
    const meshEnv = { PILOT_DEBOUNCE_AFTER: "1s", PILOT_ENABLE_EDS_FOR_HEADLESS_SERVICES: "true" };
    const { settings } = readSettings({ PILOT_DEBOUNCE_AFTER: "250ms" }, meshEnv);
    expect(settings.debounceAfterMs).toBe(250);
    expect(settings.edsForHeadless).toBe(true);
  });

  it("finds proxies under both spellings, the usual first", () => {
    const { settings } = readSettings({ HTTPS_PROXY: "", https_proxy: "small:1", HTTP_PROXY: "large:2", http_proxy: "small:2" });
    expect([settings.httpsProxy, settings.httpProxy]).toEqual(["small:1", "large:2"]);
  });

  it("takes an empty variable as unset, but an empty address as off", () => {
    const { settings, faults } = readSettings({
      PILOT_ENABLE_EDS_FOR_HEADLESS_SERVICES: "",
      HTTP_ADDR: "",
      PILOT_DEBOUNCE_AFTER: "",
      CLUSTER_ID: "",
    });
    expect(faults).toEqual([]);
    expect([settings.edsForHeadless, settings.httpAddr, settings.debounceAfterMs, settings.clusterId]).toEqual([
      false,
      "",
      100,
      "Kubernetes",
    ]);
  });

  it("names the variable, its place and the reason of a bad value, and stays complete", () => {
    const { settings, faults } = readSettings({ ISTIO_GPRC_MAXSTREAMS: "many" }, { PILOT_DEBOUNCE_MAX: "10", ISTIO_HOME: "/tmp" });
    expect(faults).toEqual([
      { name: "ISTIO_HOME", from: "mesh.yaml", message: "can only be set in the environment" },
      { name: "PILOT_DEBOUNCE_MAX", from: "mesh.yaml", message: '"10" is not a duration such as 100ms, 5s or 1h30m' },
      { name: "ISTIO_GPRC_MAXSTREAMS", from: "environment", message: '"many" is not a whole number' },
    ]);
    expect(settings.maxStreams).toBe(20_000);
  });

  it("takes no name from the prototype of a map", () => {
    expect(readSettings({}, {}).settings).not.toHaveProperty("constructor.name", "x");
    expect(unknownSettings({ PILOT_CONSTRUCTOR: "1" })).toEqual(["PILOT_CONSTRUCTOR"]);
  });
});

describe("the table of settings", () => {
  const entries = Object.entries<SettingDef>(SETTINGS);
  it("declares each variable once", () => {
    const names = entries.map(([, def]) => def.env);
    expect(new Set(names).size).toBe(names.length);
  });
  for (const [key, def] of entries) {
    it(`has a readable default and a text for ${key}`, () => {
      if (def.default !== undefined) expect(readValue(def, def.default)).toHaveProperty("value");
      expect(def.about).toMatch(/^[A-Z].*\.$/);
      expect(def.type === "choice").toBe(def.choices !== undefined);
    });
  }
});

describe("readValue", () => {
  const good: readonly [SettingType, string, unknown][] = [
    ["bool", "T", true],
    ["bool", "0", false],
    ["int", "12", 12],
    ["port", "65535", 65_535],
    ["float", "1.5", 1.5],
    ["float", ".5e1", 5],
    ["duration", "1h30m", 5_400_000],
    ["duration", "1.5s", 1500],
    ["duration", "100us", 0.1],
    ["duration", "0", 0],
    ["address", "127.0.0.1:15010", "127.0.0.1:15010"],
    ["address", "[::1]:0", "[::1]:0"],
    ["address", ":8080", ":8080"],
    ["address", "", ""],
    ["range", "10.0.0.0/8", "10.0.0.0/8"],
  ];
  for (const [type, text, value] of good)
    it(`reads ${type} ${text || "(empty)"}`, () => expect(readValue({ type }, text)).toEqual({ value }));

  const bad: readonly [SettingType, string][] = [
    ["bool", "yes"],
    ["int", "1.5"],
    ["int", "-1"],
    ["port", "99999"],
    ["port", "-1"],
    ["float", "NaN"],
    ["duration", "5"],
    ["duration", "-5s"],
    ["duration", "5s x"],
    ["range", "10.0.0.0/40"],
    ["address", "8080"],
    ["address", "::1:80"],
    ["address", "host:70000"],
    ["address", "[zz]:80"],
    ["address", "a b:80"],
  ];
  for (const [type, text] of bad) it(`refuses ${type} ${text}`, () => expect(readValue({ type }, text)).toHaveProperty("fault"));
});

describe("unknownSettings", () => {
  it("lists what looks like a setting but is none, without node metadata and Kubernetes service variables", () => {
    const env = {
      PILOT_ENABLE_EDS_FOR_HEADLESS_SERVICES: "1",
      PILOT_NO_SUCH_THING: "1",
      ISTIO_DELTA_XDS: "true",
      ISTIO_META_CLUSTER_ID: "c",
      ISTIOD_SERVICE_HOST: "10.0.0.1",
      ISTIOD_PORT: "tcp://10.0.0.1:15010",
      ISTIOD_PORT_15010_TCP_ADDR: "10.0.0.1",
      ISTIO_INGRESSGATEWAY_SERVICE_PORT_HTTP2: "80",
      PATH: "/bin",
    };
    expect(unknownSettings(env)).toEqual(["ISTIO_DELTA_XDS", "PILOT_NO_SUCH_THING"]);
  });
});
