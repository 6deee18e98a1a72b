import type { JsonObject, JsonValue } from "@bufbuild/protobuf";
import fc from "fast-check";
import type { Doc, Make } from "../doc.ts";

/** Where the objects of a wide mesh live, and hosts that they speak of: exact, partial and nowhere declared. */
export const NAMESPACE = "a";
export const EXACT_HOSTS = ["h0.test", "h1.test", "six.test"] as const;
export const HOSTS = [...EXACT_HOSTS, "*.wild.test", "short", "kube.a.svc.cluster.local"] as const;
export const SUBSETS = ["v1", "v2"] as const;
export const PORTS = [80, 81, 443, 5000, 6379, 7000] as const;
export const GATEWAYS = ["a/edge-0", "edge-1", "mesh"] as const;

/** A record whose fields are all optional. */
export const some = (fields: Readonly<Record<string, fc.Arbitrary<unknown>>>): fc.Arbitrary<JsonObject> =>
  fc.record(fields, { requiredKeys: [], noNullPrototype: true }) as fc.Arbitrary<JsonObject>;

/** The same with at least one of them. */
export const someOf = (fields: Readonly<Record<string, fc.Arbitrary<unknown>>>): fc.Arbitrary<JsonObject> =>
  some(fields).filter((one) => Object.keys(one).length > 0);

/** A record whose fields are all there. */
export const whole = (fields: Readonly<Record<string, fc.Arbitrary<unknown>>>): fc.Arbitrary<JsonObject> =>
  fc.record(fields, { noNullPrototype: true }) as fc.Arbitrary<JsonObject>;

/** Several fields of which exactly one is there. */
export const oneField = (fields: Readonly<Record<string, fc.Arbitrary<unknown>>>): fc.Arbitrary<JsonObject> =>
  fc.oneof(...Object.entries(fields).map(([name, value]) => value.map((one) => ({ [name]: one as JsonValue }))));

/** Both records in one. */
export const joined = (...parts: readonly fc.Arbitrary<JsonObject>[]): fc.Arbitrary<JsonObject> =>
  fc.tuple(...parts).map((records) => Object.assign({}, ...records) as JsonObject);

export const list = (one: fc.Arbitrary<unknown>, [minLength, maxLength]: readonly [number, number]): fc.Arbitrary<JsonValue> =>
  fc.array(one, { minLength, maxLength }) as fc.Arbitrary<JsonValue>;

export const pick = <const T extends JsonValue>(...values: readonly T[]): fc.Arbitrary<T> => fc.constantFrom(...values);
export const texts = (values: readonly string[], minLength = 1): fc.Arbitrary<string[]> => fc.subarray([...values], { minLength });

/** From the shortest that is allowed to long ones. */
export const duration = pick("0.001s", "1ms", "15ms", "1s", "90s", "1h30m", "24h");
export const percent = whole({ value: pick(0, 0.0001, 0.5, 33.3, 50, 99.9999, 100) });
export const host = pick(...EXACT_HOSTS, "short", "nowhere.test", "kube.a.svc.cluster.local");
export const port = pick(...PORTS);
export const labels = pick<JsonObject>({ app: "web" }, { app: "edge" }, { app: "plain", "odd.example.com/label": "x_y.z" });
/** Few select nothing, so that most objects say something to some proxy. */
export const selector = fc.option(
  labels.map((matchLabels): JsonObject => ({ matchLabels })),
  { nil: undefined },
);
export const stringMatch = oneField({
  exact: pick("/", "/a b", "ünïcode", "x%y", "*"),
  prefix: pick("/", "/p", "a"),
  regex: pick(".*", "^/a(b|c)+$", "[[:alpha:]]{1,20}", "(?i)x", "\\d+\\.\\d*"),
});

const GROUPS: Readonly<Record<string, string>> = {
  PeerAuthentication: "security.istio.io/v1",
  RequestAuthentication: "security.istio.io/v1",
  AuthorizationPolicy: "security.istio.io/v1",
  Telemetry: "telemetry.istio.io/v1",
  WasmPlugin: "extensions.istio.io/v1alpha1",
  TrafficExtension: "extensions.istio.io/v1alpha1",
  ProxyConfig: "networking.istio.io/v1beta1",
  EnvoyFilter: "networking.istio.io/v1alpha3",
};

/** An object of a kind by its body. Each is a second younger than the one before, so that age decides as it does in life. */
export const docOf =
  (kind: string, spec: JsonObject, metadata: JsonObject = {}): Make =>
  (index): Doc => ({
    apiVersion: GROUPS[kind] ?? "networking.istio.io/v1",
    kind,
    metadata: {
      name: `${NAME[kind] ?? kind.toLowerCase()}-${index}`,
      namespace: NAMESPACE,
      creationTimestamp: `2026-01-01T00:00:0${index % 10}Z`,
      ...metadata,
    },
    spec: present(spec),
  });

const NAME: Readonly<Record<string, string>> = { Gateway: "edge" };

/** Without what is undefined, which JSON cannot say. */
const present = (spec: JsonObject): JsonObject => JSON.parse(JSON.stringify(spec)) as JsonObject;
