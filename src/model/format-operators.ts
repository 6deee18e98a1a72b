import { quote } from "../base/quote.ts";
import { celFault } from "./cel-syntax.ts";

/** What may follow the name of a command operator: nothing; a parameter; a parameter that must be there, and then a length. */
type Shape = "bare" | "optional" | "required";

const names = (text: string): readonly string[] => text.trim().split(/\s+/);

/** The command operators of Envoy 1.40, by what may follow them. Envoy refuses the whole listener or route table that has another. */
const BARE = names(`
  ACCESS_LOG_TYPE BYTES_RECEIVED BYTES_RETRANSMITTED BYTES_SENT CONNECTION_ID CONNECTION_TERMINATION_DETAILS CUSTOM_FLAGS DOWNSTREAM_CX_RTT
  DOWNSTREAM_DECOMPRESSED_HEADER_BYTES_RECEIVED DOWNSTREAM_DECOMPRESSED_HEADER_BYTES_SENT DOWNSTREAM_DETECTED_CLOSE_TYPE
  DOWNSTREAM_DIRECT_LOCAL_ADDRESS DOWNSTREAM_DIRECT_LOCAL_ADDRESS_ENDPOINT_ID DOWNSTREAM_DIRECT_LOCAL_PORT DOWNSTREAM_DIRECT_REMOTE_ADDRESS
  DOWNSTREAM_DIRECT_REMOTE_PORT DOWNSTREAM_HANDSHAKE_DURATION DOWNSTREAM_HEADER_BYTES_RECEIVED DOWNSTREAM_HEADER_BYTES_SENT
  DOWNSTREAM_LOCAL_ADDRESS DOWNSTREAM_LOCAL_ADDRESS_ENDPOINT_ID DOWNSTREAM_LOCAL_CLOSE_REASON DOWNSTREAM_LOCAL_DNS_SAN
  DOWNSTREAM_LOCAL_EMAIL_SAN DOWNSTREAM_LOCAL_IP_SAN DOWNSTREAM_LOCAL_OTHERNAME_SAN DOWNSTREAM_LOCAL_PORT DOWNSTREAM_LOCAL_SUBJECT
  DOWNSTREAM_LOCAL_URI_SAN DOWNSTREAM_PEER_CERT DOWNSTREAM_PEER_CHAIN_FINGERPRINTS_1 DOWNSTREAM_PEER_CHAIN_FINGERPRINTS_256
  DOWNSTREAM_PEER_CHAIN_SERIALS DOWNSTREAM_PEER_DNS_SAN DOWNSTREAM_PEER_EMAIL_SAN DOWNSTREAM_PEER_FINGERPRINT_1
  DOWNSTREAM_PEER_FINGERPRINT_256 DOWNSTREAM_PEER_IP_SAN DOWNSTREAM_PEER_ISSUER DOWNSTREAM_PEER_ISSUER_FINGERPRINT_256
  DOWNSTREAM_PEER_ISSUER_SERIAL DOWNSTREAM_PEER_OTHERNAME_SAN DOWNSTREAM_PEER_SERIAL DOWNSTREAM_PEER_SUBJECT DOWNSTREAM_PEER_URI_SAN
  DOWNSTREAM_REMOTE_ADDRESS DOWNSTREAM_REMOTE_PORT DOWNSTREAM_TLS_CIPHER DOWNSTREAM_TLS_GROUP DOWNSTREAM_TLS_SESSION_ID
  DOWNSTREAM_TLS_VERSION DOWNSTREAM_TRANSPORT_FAILURE_REASON DOWNSTREAM_WIRE_BYTES_RECEIVED DOWNSTREAM_WIRE_BYTES_SENT DURATION
  FILTER_CHAIN_NAME GRPC_STATUS_NUMBER HOSTNAME LISTENER_NAME LOCAL_REPLY_BODY PACKETS_RETRANSMITTED PROTOCOL REQUEST_DURATION REQUEST_HEADERS_BYTES
  REQUEST_TX_DURATION RESPONSE_CODE RESPONSE_DURATION RESPONSE_FLAGS RESPONSE_FLAGS_LONG RESPONSE_HEADERS_BYTES RESPONSE_TRAILERS_BYTES
  RESPONSE_TX_DURATION ROUNDTRIP_DURATION ROUTE_NAME ROUTE_RESOLUTION_COUNT ROUTE_RESOLUTION_TIME_US SPAN_ID STREAM_ID TLS_JA3_FINGERPRINT
  TLS_JA4_FINGERPRINT TRACE_ID UNIQUE_ID UPSTREAM_CLUSTER UPSTREAM_CLUSTER_RAW UPSTREAM_CONNECTION_ID UPSTREAM_CONNECTION_IDS_ATTEMPTED
  UPSTREAM_CONNECTION_POOL_READY_DURATION UPSTREAM_DECOMPRESSED_HEADER_BYTES_RECEIVED UPSTREAM_DECOMPRESSED_HEADER_BYTES_SENT
  UPSTREAM_DETECTED_CLOSE_TYPE UPSTREAM_HEADER_BYTES_RECEIVED UPSTREAM_HEADER_BYTES_SENT UPSTREAM_HOST UPSTREAM_HOSTS_ATTEMPTED
  UPSTREAM_HOSTS_ATTEMPTED_WITHOUT_PORT UPSTREAM_HOST_NAME UPSTREAM_HOST_NAMES_ATTEMPTED UPSTREAM_HOST_NAMES_ATTEMPTED_WITHOUT_PORT
  UPSTREAM_HOST_NAME_WITHOUT_PORT UPSTREAM_LOCAL_ADDRESS UPSTREAM_LOCAL_CLOSE_REASON UPSTREAM_LOCAL_DNS_SAN UPSTREAM_LOCAL_IP_SAN
  UPSTREAM_LOCAL_PORT UPSTREAM_LOCAL_URI_SAN UPSTREAM_PEER_CERT UPSTREAM_PEER_DNS_SAN UPSTREAM_PEER_IP_SAN UPSTREAM_PEER_ISSUER
  UPSTREAM_PEER_SUBJECT UPSTREAM_PEER_URI_SAN UPSTREAM_PROTOCOL UPSTREAM_REMOTE_ADDRESS UPSTREAM_REMOTE_ADDRESS_ENDPOINT_ID
  UPSTREAM_REMOTE_PORT UPSTREAM_REQUEST_ATTEMPT_COUNT UPSTREAM_SERVER_NAME UPSTREAM_TLS_CIPHER UPSTREAM_TLS_GROUP UPSTREAM_TLS_SESSION_ID
  UPSTREAM_TLS_VERSION UPSTREAM_TRANSPORT_FAILURE_REASON UPSTREAM_WIRE_BYTES_RECEIVED UPSTREAM_WIRE_BYTES_SENT VIRTUAL_CLUSTER_NAME
`);

const OPTIONAL = names(`
  DOWNSTREAM_DIRECT_LOCAL_ADDRESS_WITHOUT_PORT DOWNSTREAM_DIRECT_REMOTE_ADDRESS_WITHOUT_PORT DOWNSTREAM_LOCAL_ADDRESS_WITHOUT_PORT
  DOWNSTREAM_PEER_CERT_V_END DOWNSTREAM_PEER_CERT_V_START DOWNSTREAM_REMOTE_ADDRESS_WITHOUT_PORT EMIT_TIME EMIT_TIME_LOCAL
  RESPONSE_CODE_DETAILS START_TIME START_TIME_LOCAL UPSTREAM_LOCAL_ADDRESS_WITHOUT_PORT UPSTREAM_PEER_CERT_V_END UPSTREAM_PEER_CERT_V_START
  UPSTREAM_REMOTE_ADDRESS_WITHOUT_PORT
`);

const REQUIRED = names(`
  DYNAMIC_METADATA ENVIRONMENT QUERY_PARAM REQ REQUEST_HEADER RESP RESPONSE_HEADER RESPONSE_TRAILER TRAILER
`);

const SHAPES: ReadonlyMap<string, Shape> = new Map([
  ...BARE.map((name) => [name, "bare"] as const),
  ...OPTIONAL.map((name) => [name, "optional"] as const),
  ...REQUIRED.map((name) => [name, "required"] as const),
]);

const isOne = (options: readonly string[]) => (parameter: string) => options.includes(parameter);

interface Form {
  readonly optional: boolean;
  readonly fits: (parameter: string) => boolean;
  /** Whether it is never cut to a length. */
  readonly whole?: true;
}

/** Operators whose parameter has a form of its own. */
const FORMS: ReadonlyMap<string, Form> = new Map<string, Form>([
  ["GRPC_STATUS", { optional: true, fits: isOne(["CAMEL_STRING", "SNAKE_STRING", "NUMBER"]), whole: true }],
  ["REQUESTED_SERVER_NAME", { optional: true, fits: isOne(["SNI_ONLY", "SNI_FIRST", "HOST_FIRST"]), whole: true }],
  ["PATH", { optional: true, fits: (text) => /^(?:WQ|NQ)(?::(?:PATH|ORIG|ORIG_OR_PATH))?$/.test(text) }],
  ["QUERY_PARAMS", { optional: true, fits: isOne(["ORIG", "DECODED"]) }],
  ["COMMON_DURATION", { optional: false, fits: (text) => /^[^:]+:[^:]+:(?:ms|us|ns)$/.test(text), whole: true }],
  ["FILTER_STATE", { optional: false, fits: (text) => /^[^:]+(?::(?:PLAIN|TYPED|FIELD:.+))?$/.test(text) }],
  ["UPSTREAM_FILTER_STATE", { optional: false, fits: (text) => /^[^:]+(?::(?:PLAIN|TYPED|FIELD:.+))?$/.test(text) }],
  [
    "METADATA",
    { optional: false, fits: (text) => /^(?:DYNAMIC|CLUSTER|ROUTE|UPSTREAM_HOST|LISTENER|LISTENER_FILTER_CHAIN|VIRTUAL_HOST):/.test(text) },
  ],
  ["CLUSTER_METADATA", { optional: false, fits: (text) => text !== "", whole: true }],
  ["UPSTREAM_METADATA", { optional: false, fits: (text) => text !== "", whole: true }],
  ["CEL", { optional: false, fits: (text) => text !== "" && celFault(text) === undefined }],
]);

/** Operators whose parameter is the name of a header, or two of which the first that is there counts (`a?b`). */
const OF_HEADERS = new Set(["REQ", "RESP", "TRAILER", "REQUEST_HEADER", "RESPONSE_HEADER", "RESPONSE_TRAILER", "REQ_WITHOUT_QUERY"]);

const HEADER_NAMES = /^(?::?[-!#$%&'*+.^_`|~A-Za-z0-9]+)?(?:\?(?::?[-!#$%&'*+.^_`|~A-Za-z0-9]+)?)?$/;

/** A length of more digits would not fit into Envoy's number. */
const OPERATOR = /%([A-Z0-9_]+)(?:\((.*?)\))?(?::(\d{1,19}))?%/y;

/** What is wrong with a text in which Envoy puts values for command operators (`%PROTOCOL%`, `%REQ(x):10%`). A sign for itself is written `%%`. */
export const formatFault = (text: string, more: readonly string[] = []): string | undefined => faultOf(text, found(text, more));

/** The same for access logs, which know one operator more. */
export const logFormatFault = (text: string): string | undefined => formatFault(text, ["REQ_WITHOUT_QUERY"]);

/** Envoy reads an older operator for state of filters in headers that are added. */
const ONLY_IN_HEADERS = ["PER_REQUEST_STATE"];

/** The same for headers that are added. */
export const headerFormatFault = (text: string): string | undefined => formatFault(text, ONLY_IN_HEADERS);

/** The same, operators that Envoy does not know aside: a percent sign that starts none. */
export const headerSignFault = (text: string): string | undefined =>
  faultOf(
    text,
    found(text, ONLY_IN_HEADERS).filter(({ whole }) => whole === undefined),
  );

/** The value of a header with operators that Envoy does not know as plain text, so that it says what is written instead of being refused. */
export const withKnownOperators = (text: string): string =>
  found(text, ONLY_IN_HEADERS)
    .filter(({ isKnown }) => !isKnown)
    .reduceRight((rest, { at, whole = "" }) => `${rest.slice(0, at)}${whole.replaceAll("%", "%%")}${rest.slice(at + whole.length)}`, text);

/** An operator in a text; without `whole` a percent sign that starts none, after which nothing can be made out. */
interface Found {
  readonly at: number;
  readonly whole: string | undefined;
  readonly isKnown: boolean;
}

function found(text: string, more: readonly string[]): readonly Found[] {
  const operators: Found[] = [];
  for (let at = text.indexOf("%"); at !== -1; at = text.indexOf("%", at)) {
    if (text[at + 1] === "%") {
      at += 2;
      continue;
    }
    OPERATOR.lastIndex = at;
    const [whole, name = "", parameter, length] = OPERATOR.exec(text) ?? [];
    if (whole === undefined) return [...operators, { at, whole, isKnown: false }];
    const shape = more.includes(name) ? "required" : SHAPES.get(name);
    operators.push({ at, whole, isKnown: isRight({ name, shape, parameter: parameter || undefined, length }) });
    at += whole.length;
  }
  return operators;
}

function faultOf(text: string, operators: readonly Found[]): string | undefined {
  const wrong = operators.find(({ isKnown }) => !isKnown);
  if (wrong === undefined) return undefined;
  return wrong.whole === undefined
    ? `${quote(text)} has a percent sign that starts no complete operator such as %HOSTNAME%; write %% for the sign itself`
    : `${quote(wrong.whole)} is not an operator that Envoy knows`;
}

interface Operator {
  readonly name: string;
  readonly shape: Shape | undefined;
  readonly parameter: string | undefined;
  readonly length: string | undefined;
}

function isRight({ name, shape, parameter, length }: Operator): boolean {
  const form = FORMS.get(name);
  if (form?.whole === true && length !== undefined) return false;
  if (form !== undefined) return parameter === undefined ? form.optional : form.fits(parameter);
  switch (shape) {
    case undefined:
      return false;
    case "bare":
      return parameter === undefined && length === undefined;
    case "optional":
      return length === undefined;
    case "required":
      return parameter !== undefined && (!OF_HEADERS.has(name) || HEADER_NAMES.test(parameter));
  }
}
