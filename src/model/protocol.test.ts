import assert from "node:assert/strict";
import { describe, it } from "vitest";
import { isHttp, isHttp2, isTcp, type NamedPort, type Protocol, parseProtocol, protocolOfPort } from "./protocol.ts";

describe("protocolOfPort", () => {
  const port: NamedPort = { name: "", number: 8080, transport: "TCP", appProtocol: undefined };
  const table: readonly [what: string, port: Partial<NamedPort>, want: Protocol][] = [
    ["the whole name", { name: "http" }, "HTTP"],
    ["a prefix", { name: "http-web" }, "HTTP"],
    ["in any case", { name: "HTTP2-x" }, "HTTP2"],
    ["no prefix without a dash", { name: "httpweb" }, "Auto"],
    ["grpc", { name: "grpc-api" }, "GRPC"],
    ["grpc-web, dash and all", { name: "grpc-web" }, "GRPC-WEB"],
    ["grpc-web with a suffix", { name: "grpc-web-ui" }, "GRPC-WEB"],
    ["https", { name: "https" }, "HTTPS"],
    ["tls", { name: "tls-db" }, "TLS"],
    ["tcp", { name: "tcp-db" }, "TCP"],
    ["mongo", { name: "mongo" }, "MONGO"],
    ["mysql", { name: "mysql-main" }, "MYSQL"],
    ["redis", { name: "redis" }, "REDIS"],
    ["an unknown name", { name: "metrics" }, "Auto"],
    ["no name", {}, "Auto"],
    ["UDP, whatever the name", { name: "http", transport: "UDP" }, "UDP"],
    ["SCTP is not proxied either", { name: "http", transport: "SCTP" }, "UDP"],
    ["a UDP prefix", { name: "udp-dns" }, "UDP"],
    ["appProtocol before the name", { name: "http", appProtocol: "grpc" }, "GRPC"],
    ["an unknown appProtocol hides the name", { name: "http", appProtocol: "example.com/own" }, "Auto"],
    ["h2c", { appProtocol: "kubernetes.io/h2c" }, "HTTP2"],
    ["WebSocket", { appProtocol: "kubernetes.io/ws" }, "HTTP"],
    ["WebSocket over TLS", { appProtocol: "kubernetes.io/wss" }, "HTTPS"],
    ["gRPC as Kubernetes names it", { appProtocol: "kubernetes.io/grpc" }, "GRPC"],
    ["MySQL's port is never sniffed", { number: 3306 }, "TCP"],
    ["SMTP's neither", { name: "mail", number: 25 }, "TCP"],
    ["a name wins on a well-known port", { name: "http", number: 27017 }, "HTTP"],
  ];
  for (const [what, given, want] of table) it(`${what}: ${want}`, () => assert.equal(protocolOfPort({ ...port, ...given }), want));
});

describe("parseProtocol", () => {
  const table: readonly [name: string, want: Protocol | undefined][] = [
    ["HTTP", "HTTP"],
    ["http_proxy", "HTTP_PROXY"],
    ["gRPC-Web", "GRPC-WEB"],
    ["", undefined],
    ["Auto", undefined],
    ["QUIC", undefined],
  ];
  for (const [name, want] of table) it(`${name || "(empty)"} is ${want ?? "unknown"}`, () => assert.equal(parseProtocol(name), want));

  it("every protocol but UDP and Auto is either HTTP or TCP", () => {
    for (const name of ["HTTP", "HTTP2", "HTTP_PROXY", "GRPC", "GRPC-WEB", "HTTPS", "TLS", "TCP", "MONGO", "MYSQL", "REDIS"] as const) {
      assert.notEqual(isHttp(name), isTcp(name), name);
      if (isHttp2(name)) assert.ok(isHttp(name));
    }
  });
});
