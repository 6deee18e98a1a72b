import { expect, it } from "vitest";
import { frontBootstrap } from "./front-bootstrap.ts";

const bootstrap = (keepaliveMs: number): string =>
  frontBootstrap({
    addresses: [{ host: "", port: 15012 }],
    socket: "/run/istiod.sock",
    secretsSocket: "/run/secrets.sock",
    keepaliveMs,
    keepaliveTimeoutMs: 10_000,
    maxConnections: 10,
  });

it("probes connections and lets go of those without a call after the same time, and does neither where probing is off", () => {
  expect(bootstrap(30_000)).toContain('"connection_keepalive":{"interval":"30s","timeout":"10s"}');
  expect(bootstrap(30_000)).toContain('"idle_timeout":"30s"');
  // Envoy takes no interval of nothing, and nothing for a time that does not end.
  expect(bootstrap(0)).not.toContain("connection_keepalive");
  expect(bootstrap(0)).toContain('"idle_timeout":"0s"');
});

it("takes callers without a certificate, who show a token, whatever Envoy does where nothing is said", () => {
  expect(bootstrap(30_000)).toContain('"require_client_certificate":false');
});
