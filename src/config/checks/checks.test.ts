import { describe, expect, it } from "vitest";
import { celFault } from "../../model/cel-syntax.ts";
import { logFormatFault } from "../../model/format-operators.ts";
import { splitHostPort, subnetFault, unixPathFault } from "./address.ts";
import { checkExportTo } from "./export-to.ts";
import {
  headerChangeFault,
  headerNameFault,
  headerOperatorFault,
  headerOrClaimFault,
  headerValueFault,
  requestHeaderChangeFault,
  soughtHeaderFault,
} from "./header.ts";
import { fqdnFault, gatewayDomainFault, partialWildcardFault, trustDomainFault, wildcardDomainFault } from "./host-name.ts";
import { labelKeyFault, labelValueFault } from "./labels.ts";
import { shareFault } from "./percent.ts";
import { placeOf } from "./place.ts";
import { portNameFault, protocolFault } from "./port.ts";
import { regexFault } from "./regex.ts";

/** A check with texts it takes and texts it refuses. */
type Row = readonly [name: string, fault: (text: string) => string | undefined, takes: readonly string[], refuses: readonly string[]];

const TABLE: readonly Row[] = [
  [
    "fqdnFault",
    fqdnFault,
    ["istio.io", "istio.io.", "a", "A-b.c", "1.a"],
    ["", ".", "a..b", "-a.b", "a-.b", "*.a", "1.2.3.4", "a.1", "x".repeat(64), "a/b", "a_b"],
  ],
  [
    "wildcardDomainFault",
    wildcardDomainFault,
    ["*", "*.a.b", "*-a.b", "*a", "a", "a.b."],
    ["", "a.*", "a*.b", "**", "*.*.a", "1.1.1.1", "*-", "*."],
  ],
  ["partialWildcardFault", partialWildcardFault, ["*", "*.a", "a"], ["*a", "*-a.b"]],
  ["trustDomainFault", trustDomainFault, ["a", "a.b", "a.b.", "cluster.local"], ["", ".", "a/b", "a..b", "a_b"]],
  [
    "SNI of a gateway",
    (text) => gatewayDomainFault(text, true),
    ["a.b", "outbound_.80_._.a.b", "outbound_.80_.v1_.a.b", "outbound.a"],
    ["outbound_.x_._.a", "outbound_.80_._.a_b", "outbound_.80_._."],
  ],
  [
    "subnetFault",
    subnetFault,
    ["1.2.3.4", "1.2.3.4/8", "::1", "fe80::/10", "0.0.0.0/0"],
    ["", "1.2.3", "1.2.3.4/33", "::1/129", "1.2.3.4/", "1.2.3.4/08", "a/8", "01.2.3.4"],
  ],
  ["unixPathFault", unixPathFault, ["/a", "/a/b.sock", "@a"], ["", "a", "./a", "/", "/a/"]],
  ["portNameFault", portNameFault, ["http", "http-a", "Full", "7777"], ["", "a_b", "a.b", "@", "x".repeat(64)]],
  ["protocolFault", protocolFault, ["", "http", "HTTP", "gRPC-Web", "tls", "http_proxy"], ["http1", "tpc", "constructor"]],
  ["labelKeyFault", labelKeyFault, ["app", "istio.io/rev", "A_b.c"], ["", ".", "a/b/c", "/a", "a/", "-a", "a_b/c", "x".repeat(64)]],
  ["labelValueFault", labelValueFault, ["", "v1", "A_b.c"], ["~", "-a", "a b", "x".repeat(64)]],
  ["headerNameFault", headerNameFault, ["X-a", "*", "a_b", "funky!$#_"], ["", ":authority", "::", "a b", "a:b", "ä"]],
  [
    "headerOrClaimFault",
    headerOrClaimFault,
    ["x", ":authority", ":method", ":path", ":scheme", ":status", "@request.auth.claims.sub", "@request.auth.claims[a][b]"],
    ["", "@request.auth.claims", "@x", ":", ":host", ":Path", ":authority "],
  ],
  ["soughtHeaderFault", soughtHeaderFault, ["x", ":path", "a b", "é"], ["", "a\nb", "a\r", "\0", "x".repeat(16_385)]],
  ["headerChangeFault", headerChangeFault, ["x", "x".repeat(16_384)], ["", ":path", ":authority", "Host", "a\nb"]],
  ["requestHeaderChangeFault", requestHeaderChangeFault, ["x", ":authority", "host"], ["", ":path"]],
  [
    "headerValueFault",
    headerValueFault,
    [
      "",
      "a",
      "100%%",
      "%HOSTNAME%",
      "a %REQ(x?y):10% b",
      '%UPSTREAM_METADATA(["a", "b)"])%',
      "%START_TIME(%s)%",
      "%%%%",
      "%PER_REQUEST_STATE(x)%",
      "%UNKNOWN%",
    ],
    ["%", "a%b", "%%%", "%HOSTNAME", "%REQ(x%", "%REQ(x)", "%REQ(x)y%", "% %", "%UNKNOWN% %"],
  ],
  [
    "headerOperatorFault",
    headerOperatorFault,
    ["", "100%%", "%HOSTNAME%", "%PER_REQUEST_STATE(x)%", "a%b", "%UNKNOWN% %"],
    ["%UNKNOWN%", "a %HOSTNAME% %UNKNOWN(x):3%", "%HOSTNAME(x)%", "%REQ%"],
  ],
  [
    "logFormatFault",
    logFormatFault,
    ["%PROTOCOL% %DURATION%ms\n", "%CEL(request.path)%", "%GRPC_STATUS(NUMBER)%", "%METADATA(ROUTE:x)%", "%REQ_WITHOUT_QUERY(:PATH):5%"],
    [
      "%REQ%",
      "%REQ()%",
      "%req(x)%",
      "%REQ(x y)%",
      "%PROTOCOL(x)%",
      "%UPSTREAM_HOST:5%",
      "%GRPC_STATUS(BAD)%",
      "%METADATA(BAD:x)%",
      "%CEL(bad bad)%",
      "%GRPC_STATUS:3%",
      "%CLUSTER_METADATA(x):3%",
      "%COMMON_DURATION(US_RX_BEG:DS_TX_END:ms):3%",
      "%REQ(x):99999999999999999999%",
    ],
  ],
  [
    "regexFault",
    regexFault,
    ["", "a+", "^/(?P<x>[^/]+)$", "\\d{2}", "(ab|cd){900}", "\\x{ff}", "\\\\x{100}"],
    ["?", "(a", "a**", "(?=a)", "(?<!a)b", "\\1", "x".repeat(1025), "(a{100}){100}", "(ab|cd|ef|gh){999}".repeat(5), "\\x{100}"],
  ],
  [
    "celFault",
    celFault,
    [
      "response.code >= 400",
      "has(request.headers.x) && !(a.b in [1, 2u, 0x1F])",
      'a ? b : {"k": [c, .d]}',
      "a ? !b : -c",
      "!-1 == --x",
      "-9223372036854775808 < 18446744073709551615u",
      "'\\'\\x41\\101\\u00e4' + r\"\\d\" // note",
      'b\'\\xff\' + """a"\nb"""',
      "-1.5e3 == .5",
      "a.for.`b-c`['d'].size()",
      "size(a) == int(b) && timestamp(c).getHours('UTC') > 1",
      "re.extract(request.path, '/(.)', '1')",
      "has((a.`b`))",
      "a.matches(b) || matches(c, '^/v[0-9]+/(users|orders)/.+$')",
      `a.matches('${"x".repeat(96)}')`,
      `${"a || ".repeat(500)}a`,
      `a${".b".repeat(31)}`,
      `a${" + a.b.c.d.e".repeat(27)}`,
      `${"(".repeat(32)}a${")".repeat(32)}`,
    ],
    [
      ...["", ")++++", "a b", "a &&", "(a", "[1", "a.", "a..b", "'x", "a ? b", "{1}", "in", "a = b", "@", "(".repeat(200)],
      ...["string(a)", "a.lowerAscii()", "a.size(b)", "size()", "x.all(i, i > 0)", "[1].exists(x, x > 1)", "math.greatest(1, 2)"],
      ...[
        "has(a)",
        "has(a['b'])",
        "has(a.b == c.d)",
        "size(a,)",
        "type.Name{field: 1}",
        "a ? b ? c : d : e",
        "-!a",
        "!-a",
        "for",
        "a.in",
        "a.true",
      ],
      ...[
        "'\\d'",
        "'\\ud800'",
        "b'\\u00e4'",
        "r'\\'",
        "rb'x'",
        "9223372036854775808",
        "1 - 9223372036854775808",
        "18446744073709551616u",
        "1.5u",
      ],
      ...[
        "a.matches('[')",
        "matches(a, '(?=b)')",
        "a.matches('\\x5b')",
        `a.matches('${"x".repeat(97)}')`,
        "a.matches('...............')",
        "a\u00a0",
      ],
      ...[`a${".b".repeat(32)}`, `a${" + a.b.c.d.e".repeat(28)}`, `${"(".repeat(33)}a${")".repeat(33)}`],
    ],
  ],
];

for (const [name, fault, takes, refuses] of TABLE) {
  describe(name, () => {
    for (const text of takes) it(`takes ${JSON.stringify(text.slice(0, 60))}`, () => expect(fault(text)).toBeUndefined());
    for (const text of refuses) it(`refuses ${JSON.stringify(text.slice(0, 60))}`, () => expect(fault(text)).toEqual(expect.any(String)));
  });
}

it("shareFault keeps to what Envoy can count", () => {
  expect([0, 0.0001, 50, 100].map(shareFault)).toEqual([undefined, undefined, undefined, undefined]);
  for (const value of [-1, 0.00001, 100.1, Number.NaN]) expect(shareFault(value)).toBeDefined();
});

it("splitHostPort splits as Go does", () => {
  expect(splitHostPort("a:1")).toEqual({ host: "a", port: "1" });
  expect(splitHostPort("[::1]:80")).toEqual({ host: "::1", port: "80" });
  expect(splitHostPort(":80")).toEqual({ host: "", port: "80" });
  for (const text of ["a", "::1", "[::1]", "a:b:c", "[::1]80", ""]) expect(splitHostPort(text)).toBeUndefined();
});

it("a place puts its path together when something is wrong", () => {
  const found: unknown[] = [];
  const place = placeOf((code, path, message) => found.push([code, path, message]), ["spec"]).in("http", 0);
  place.in("a").check("field.invalid", undefined);
  place.in("a").check("field.invalid", "wrong");
  expect(found).toEqual([["field.invalid", ["spec", "http", 0, "a"], "wrong"]]);
});

it("an object without a namespace is not exported to its own", () => {
  const found: unknown[] = [];
  const judge = (...entries: readonly string[]): void =>
    checkExportTo(
      entries,
      { namespace: "" },
      placeOf((code, path) => found.push([code, ...path]), []),
    );
  judge("*");
  judge("shop");
  judge(".");
  expect(found).toEqual([["field.invalid", 0]]);
});
