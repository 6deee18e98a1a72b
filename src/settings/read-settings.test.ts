import { describe, expect, it } from "vitest";
import { readSettings, unknownSettings } from "./read-settings.ts";
import { readValue } from "./read-value.ts";
import { SETTINGS, type SettingDef, type SettingType } from "./table.ts";

describe("readSettings", () => {
  it("gives every default where nothing is set", () => {
    const { settings, faults } = readSettings({});
    expect(faults).toEqual([]);
    expect(settings).toEqual({
      home: "",
      podName: "",
      podNamespace: "istio-system",
      clusterId: "Kubernetes",
      revision: "",
      trustDomain: "",
      grpcAddr: undefined,
      secureGrpcAddr: undefined,
      httpsAddr: undefined,
      httpAddr: undefined,
      monitoringAddr: undefined,
      debounceAfterMs: 100,
      debounceMaxMs: 10_000,
      debounceEndpoints: true,
      pushThrottle: 0,
      maxRequestsPerSecond: 0,
      keepaliveIntervalMs: 30_000,
      keepaliveTimeoutMs: 10_000,
      maxReceiveBytes: 4_194_304,
      maxStreams: 100_000,
      edsForHeadless: false,
      sidecarUseRemoteAddress: false,
      http10: false,
      absoluteFqdnDomains: true,
      scopeGatewayToNamespace: false,
      autoAllocateAddresses: true,
      autoAllocateIpv4: "240.240.0.0/16",
      autoAllocateIpv6: "2001:2::/48",
      logLevel: "info",
      logJson: false,
    });
    expect(Object.isFrozen(settings)).toBe(true);
  });

  it("lets the environment win over mesh.yaml, and mesh.yaml over the default", () => {
    const meshEnv = { PILOT_DEBOUNCE_AFTER: "1s", PILOT_HTTP10: "true" };
    const { settings } = readSettings({ PILOT_DEBOUNCE_AFTER: "250ms" }, meshEnv);
    expect(settings.debounceAfterMs).toBe(250);
    expect(settings.http10).toBe(true);
  });

  it("takes an empty variable as unset, but an empty address as off", () => {
    const { settings, faults } = readSettings({ PILOT_HTTP10: "", HTTP_ADDR: "", PILOT_DEBOUNCE_AFTER: "" });
    expect(faults).toEqual([]);
    expect([settings.http10, settings.httpAddr, settings.debounceAfterMs]).toEqual([false, "", 100]);
  });

  it("names the variable, its place and the reason of a bad value, and stays complete", () => {
    const { settings, faults } = readSettings({ PILOT_PUSH_THROTTLE: "many" }, { PILOT_DEBOUNCE_MAX: "10", ISTIO_HOME: "/tmp" });
    expect(faults).toEqual([
      { name: "ISTIO_HOME", from: "mesh.yaml", message: "can only be set in the environment" },
      { name: "PILOT_DEBOUNCE_MAX", from: "mesh.yaml", message: '"10" is not a duration such as 100ms, 5s or 1h30m' },
      { name: "PILOT_PUSH_THROTTLE", from: "environment", message: '"many" is not a whole number' },
    ]);
    expect(settings.pushThrottle).toBe(0);
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
  ];
  for (const [type, text, value] of good) it(`reads ${type} ${text || "(empty)"}`, () => expect(readValue({ type }, text)).toEqual({ value }));

  const bad: readonly [SettingType, string][] = [
    ["bool", "yes"],
    ["int", "1.5"],
    ["int", "-1"],
    ["float", "NaN"],
    ["duration", "5"],
    ["duration", "-5s"],
    ["duration", "5s x"],
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
      PILOT_HTTP10: "1",
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
