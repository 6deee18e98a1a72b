import { bytesField, messageField, numberField, structBytes, textField } from "../../wire/field-writer.ts";
import { type NodeIdentity, nodeBytes } from "../node-identity.ts";

/** What only the machine knows of a bootstrap. */
export interface LocalPart {
  readonly node: NodeIdentity;
  readonly adminPort: number;
  /** The workload has IPv6 addresses only. */
  readonly onlyIpv6: boolean;
  /** Envoy logs JSON. */
  readonly logJson: boolean;
  /** The agent's sockets for configuration and for certificates. */
  readonly xdsSocket: string;
  readonly sdsSocket: string;
}

/**
 * The local part as bytes of an `envoy.config.bootstrap.v3.Bootstrap`, to be put after those that came from the control plane: two messages
 * written one after the other are one, in which later values win and lists are joined. So nothing that the control plane sent is read here.
 */
export function localPart({ node, adminPort, onlyIpv6, logJson, xdsSocket, sdsSocket }: LocalPart): Buffer {
  const adminAddress = messageField(1, [textField(2, onlyIpv6 ? "::1" : "127.0.0.1"), numberField(3, adminPort)]);
  return Buffer.concat([
    bytesField(1, nodeBytes(node)),
    messageField(2, [
      bytesField(2, socketCluster("sds-grpc", sdsSocket)),
      bytesField(2, Buffer.concat([socketCluster("xds-grpc", xdsSocket), MANY_REQUESTS])),
    ]),
    messageField(12, [messageField(3, [adminAddress])]),
    ...(logJson ? [messageField(38, [messageField(1, [bytesField(1, structBytes(JSON_LOG))])])] : []),
  ]);
}

/** The fields of Envoy's log lines, under the names that Istio's programs have. */
const JSON_LOG = { time: "%Y-%m-%dT%T.%fZ", level: "%l", scope: "envoy %n", msg: "%j", caller: "%g:%#", thread: "%t" };

const HTTP2_OPTIONS = "envoy.extensions.upstreams.http.v3.HttpProtocolOptions";
/** `explicit_http_config: {http2_protocol_options: {}}` */
const HTTP2 = messageField(3, [bytesField(2, Buffer.alloc(0))]);
/** `type: STATIC`, said although it is 0: the field is one of several. */
const STATIC = Buffer.from([2 * 8, 0]);
const ONE_SECOND = numberField(1, 1);

/** A cluster with HTTP/2 to a Unix socket. */
function socketCluster(name: string, path: string): Buffer {
  const address = messageField(2, [textField(1, path)]);
  const endpoint = messageField(1, [messageField(1, [address])]);
  const options = Buffer.concat([textField(1, `type.googleapis.com/${HTTP2_OPTIONS}`), bytesField(2, HTTP2)]);
  return Buffer.concat([
    textField(1, name),
    textField(28, `${name};`),
    STATIC,
    messageField(4, [ONE_SECOND]),
    messageField(33, [textField(1, name), messageField(2, [messageField(2, [endpoint])])]),
    messageField(36, [textField(1, HTTP2_OPTIONS), bytesField(2, options)]),
  ]);
}

const limit = (field: number): Buffer => bytesField(field, numberField(1, 100_000));
const threshold = (priority: number): Buffer => messageField(1, [numberField(1, priority), limit(2), limit(3), limit(4)]);
/** Circuit breakers that never open, for both priorities: configuration must come through. */
const MANY_REQUESTS = messageField(10, [threshold(0), threshold(1)]);
