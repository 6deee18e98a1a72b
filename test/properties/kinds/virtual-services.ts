import type { JsonObject } from "@bufbuild/protobuf";
import fc from "fast-check";
import type { Make } from "../doc.ts";
import {
  docOf,
  duration,
  GATEWAYS,
  HOSTS,
  host,
  joined,
  labels,
  list,
  oneField,
  percent,
  pick,
  port,
  SUBSETS,
  some,
  someOf,
  stringMatch,
  texts,
  whole,
} from "./values.ts";

const destination = joined(whole({ host }), some({ subset: pick(...SUBSETS, "none"), port: whole({ number: port }) }));
const headerOps = some({
  set: pick<JsonObject>({ "x-set": "%REQ(x-a)%" }, { "x-percent": "100%%", "x-two": "" }),
  add: pick<JsonObject>({ "x-add": "a, b" }),
  remove: texts(["x-gone", "X-Gone-Too"]),
});
const headers = some({ request: headerOps, response: headerOps });
/** Of these the rewriting of the authority must not stand beside them. */
const hostHeaders = pick<JsonObject>({ request: { set: { Host: "other.test" } } }, { request: { set: { ":authority": "other.test" } } });

const matched = fc.dictionary(pick("x-a", "end-user", ":path", "X-Mixed"), stringMatch, { maxKeys: 2, noNullPrototype: true });
const httpMatch = some({
  name: pick("first", "a b"),
  uri: stringMatch,
  scheme: stringMatch,
  method: stringMatch,
  authority: stringMatch,
  headers: fc.oneof(matched, pick<JsonObject>({ "x-present": {} })),
  withoutHeaders: matched,
  queryParams: fc.dictionary(pick("q", "q%20r"), stringMatch, { maxKeys: 2, noNullPrototype: true }),
  port,
  sourceLabels: labels,
  sourceNamespace: pick("a", "b"),
  gateways: texts(GATEWAYS),
  ignoreUriCase: fc.boolean(),
  statPrefix: pick("stat"),
});

/** Weights of several destinations; with one there is none to give. */
const weighted = fc
  .array(joined(whole({ destination }), some({ headers })), { minLength: 1, maxLength: 3 })
  .map((all): JsonObject[] => (all.length === 1 ? all : all.map((one, index) => ({ ...one, weight: index === 0 ? 100 : index * 50 }))));

const fault = fc.oneof(
  whole({ delay: joined(whole({ fixedDelay: duration }), some({ percentage: percent })) }),
  whole({
    abort: joined(oneField({ httpStatus: pick(200, 503, 599), grpcStatus: pick("UNAVAILABLE", "OK") }), some({ percentage: percent })),
  }),
);
const corsPolicy = some({
  allowOrigins: list(stringMatch, [1, 2]),
  allowMethods: texts(["GET", "POST", "PATCH"]),
  allowHeaders: texts(["*", "x-a"]),
  exposeHeaders: texts(["x-b"]),
  maxAge: pick("1s", "24h"),
  allowCredentials: fc.boolean(),
  unmatchedPreflights: pick("FORWARD", "IGNORE"),
});
const retries = fc.oneof(
  pick<JsonObject>({ attempts: 0 }),
  joined(
    whole({ attempts: pick(1, 3, 100) }),
    some({
      perTryTimeout: duration,
      retryOn: pick("5xx", "connect-failure,refused-stream,503,gateway-error", "retriable-headers"),
      retryRemoteLocalities: fc.boolean(),
      retryIgnorePreviousHosts: fc.boolean(),
      backoff: pick("1ms", "25ms", "1s"),
    }),
  ),
);
const rewrite = fc.oneof(
  whole({ uri: pick("/", "/new") }),
  whole({ authority: pick("other.test") }),
  whole({ uri: pick("/new"), authority: pick("other.test") }),
  pick<JsonObject>({ uriRegexRewrite: { match: "^/a/([^/]+)$", rewrite: "/b/\\1" } }),
);
const routed = joined(
  whole({ route: weighted }),
  some({
    name: pick("route", "ro/ute é"),
    timeout: duration,
    retries,
    fault,
    corsPolicy,
    mirror: destination,
    mirrorPercentage: percent,
  }),
  fc.oneof(some({ rewrite, headers }), whole({ headers: hostHeaders })),
);
const mirrored = joined(whole({ route: weighted, mirrors: list(joined(whole({ destination }), some({ percentage: percent })), [1, 2]) }));
const redirected = whole({
  redirect: joined(
    fc.oneof(someOf({ uri: pick("/elsewhere", "/%PREFIX()%"), authority: pick("else.test") }), pick<JsonObject>({ uri: "%PREFIX()%/x" })),
    some({ scheme: pick("https"), redirectCode: pick(301, 302, 303, 307, 308) }),
    fc.oneof(pick<JsonObject>({}), oneField({ port: pick(8443), derivePort: pick("FROM_PROTOCOL_DEFAULT", "FROM_REQUEST_PORT") })),
  ),
});
const direct = joined(
  whole({
    directResponse: joined(
      whole({ status: pick(200, 404, 503) }),
      some({ body: oneField({ string: pick("", "näin"), bytes: pick("AAH/") }) }),
    ),
  }),
  some({ headers }),
);
const httpRoute = joined(
  fc.oneof({ arbitrary: routed, weight: 5 }, mirrored, redirected, direct),
  some({ match: list(httpMatch, [1, 3]) }),
);

const l4Match = {
  port,
  sourceLabels: labels,
  gateways: texts(GATEWAYS),
  destinationSubnets: texts(["10.1.0.0/16", "10.1.2.3", "2001:db8::/32"]),
};
const l4Route = fc
  .array(whole({ destination }), { minLength: 1, maxLength: 2 })
  .map((all): JsonObject[] => (all.length === 1 ? all : all.map((one) => ({ ...one, weight: 50 }))));
const tcp = joined(whole({ route: l4Route }), some({ match: list(some(l4Match), [1, 2]) }));

/** The server names must be among the hosts of the object. */
const tls = (hosts: readonly string[]): fc.Arbitrary<JsonObject> =>
  whole({
    route: l4Route,
    match: list(joined(whole({ sniHosts: pick([...hosts], ...hosts.map((one) => [one.replace("*", "x")])) }), some(l4Match)), [1, 2]),
  });

/** A VirtualService with routes of all protocols, that of the mesh and those of gateways. */
export const virtualService: fc.Arbitrary<Make> = texts(
  [...HOSTS].filter((one) => one !== "short"),
  1,
).chain((hosts) =>
  joined(
    whole({ hosts: pick(hosts), http: list(httpRoute, [1, 4]) }),
    some({ gateways: texts(GATEWAYS), tcp: list(tcp, [1, 2]), tls: list(tls(hosts), [1, 2]), exportTo: list(pick(".", "*"), [1, 1]) }),
  ).map((spec) => docOf("VirtualService", spec)),
);
