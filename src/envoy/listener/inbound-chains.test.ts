import { describe, expect, it } from "vitest";
import type { HttpManagerInput } from "../filters/http-connection-manager.ts";
import type { DownstreamTlsInput } from "../tls/index.ts";
import { PLAIN_HTTP } from "./alpn.ts";
import { type InboundKind, type InboundPortInput, inboundChains, inspectorsFor, type MtlsMode } from "./inbound-chains.ts";

const mtls: DownstreamTlsInput = { certificates: ["default"], requireClientCertificate: true, alpn: [] };
const http: HttpManagerInput = {
  statPrefix: "x",
  grpcWeb: false,
  suppressEnvoyHeaders: false,
  routes: { rds: "x" },
  useRemoteAddress: false,
  trustedHops: 0,
  clientCert: undefined,
  server: undefined,
  http2: false,
  pathNormalization: "base",
  accessLogs: [],
  tracing: undefined,
  requestIdDecidesSampling: true,
  generateRequestId: true,
};

const port = (number: number | undefined, kind: InboundKind, mode: MtlsMode): InboundPortInput => ({
  port: number,
  kind,
  mode,
  names: { http: "h", tcp: "t" },
  http,
  tcp: { statPrefix: "x", destinations: [{ cluster: "x", weight: 0 }], accessLogs: [] },
  plainHttp: PLAIN_HTTP,
  mtls,
});

describe("inboundChains", () => {
  const table: readonly [mode: MtlsMode, kind: InboundKind, plain: number, mutual: number][] = [
    ["permissive", "http", 1, 1],
    ["permissive", "tcp", 2, 1],
    ["permissive", "auto", 3, 2],
    ["strict", "http", 0, 1],
    ["strict", "tcp", 0, 1],
    ["strict", "auto", 0, 2],
    ["disable", "http", 1, 0],
    ["disable", "tcp", 1, 0],
    ["disable", "auto", 2, 0],
  ];
  for (const [mode, kind, plain, mutual] of table) {
    it(`${kind} ports in mode ${mode} have ${plain} plain and ${mutual} mutual TLS chains`, () => {
      const chains = inboundChains(port(8080, kind, mode));
      expect(chains.filter(({ tls }) => tls === undefined)).toHaveLength(plain);
      expect(chains.filter(({ tls }) => tls === mtls)).toHaveLength(mutual);
      expect(chains.every(({ match }) => match.destinationPort === 8080)).toBe(true);
    });
  }

  it("never lets plain text into a strict port", () => {
    for (const kind of ["http", "tcp", "auto"] as const) {
      expect(inboundChains(port(1, kind, "strict")).every(({ match, tls }) => match.transport === "tls" && tls !== undefined)).toBe(true);
    }
  });

  it("ends the application's own TLS only where mutual TLS is off", () => {
    const ownTls: DownstreamTlsInput = { certificates: ["own"], requireClientCertificate: false, alpn: [] };
    expect(inboundChains({ ...port(1, "http", "disable"), ownTls }).map(({ tls }) => tls)).toEqual([ownTls]);
    expect(inboundChains({ ...port(1, "http", "strict"), ownTls }).map(({ tls }) => tls)).toEqual([mtls]);
  });
});

describe("inspectorsFor", () => {
  const of = (...ports: readonly InboundPortInput[]) => inspectorsFor(ports.flatMap(inboundChains));

  it("asks for none where no chain needs to know", () => expect(of(port(undefined, "tcp", "disable"))).toEqual({}));

  it("keeps off ports that can do without", () => {
    expect(of(port(undefined, "auto", "permissive"), port(80, "http", "permissive"), port(81, "tcp", "disable"))).toEqual({
      tls: { on: "allBut", ports: [81] },
      http: { on: "allBut", ports: [80, 81] },
    });
  });

  it("looks for TLS only where it is spoken when the rest is plain", () => {
    expect(of(port(undefined, "tcp", "disable"), port(80, "http", "strict")).tls).toEqual({ on: "only", ports: [80] });
  });
});
