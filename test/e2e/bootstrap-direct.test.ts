import { execFile } from "node:child_process";
import { join } from "node:path";
import { promisify } from "node:util";
import { describe, expect, it, onTestFinished } from "vitest";
import { startEnvoy } from "../../src/agent/envoy-process.ts";
import { findEnvoy } from "../../src/agent/find-envoy.ts";
import { systemClock } from "../../src/base/clock.ts";
import { createCertificateIssuer, placeFiles, tlsSecret } from "../support/certificates.ts";
import { tempDir } from "../support/cleanup.ts";
import { httpEcho } from "../support/echo.ts";
import { freePort } from "../support/ports.ts";
import { listening } from "../support/proxy.ts";
import { startSecureIstiod, tokenFor } from "../support/secure-proxy.ts";
import { SERVICE_HOST, serviceEntry } from "../support/service-mesh.ts";
import { tlsCall } from "../support/tls-call.ts";

const run = promisify(execFile);
const ISTIOCTL = join(import.meta.dirname, "../../dist/istioctl.mjs");

const gateway = (port: number): string => `
apiVersion: networking.istio.io/v1
kind: Gateway
metadata: {name: edge, namespace: shop}
spec: {selector: {app: edge}, servers: [{port: {number: ${port}, name: a, protocol: HTTPS}, hosts: [a.example.com], tls: {mode: SIMPLE, credentialName: cert}}]}
---
apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: {name: edge, namespace: shop}
spec: {hosts: ["*"], gateways: [edge], http: [{route: [{destination: {host: ${SERVICE_HOST}}}]}]}
---
`;

describe("istioctl bootstrap --direct", () => {
  it("prints what lets an Envoy call istiod by its token, and a gateway get its credentials", async () => {
    const ca = await createCertificateIssuer("servers");
    const echo = await httpEcho("shop");
    const [port, service, adminPort] = [await freePort(), await freePort(), await freePort()];
    const istiod = await startSecureIstiod({
      files: {
        "conf/all.yaml": gateway(port) + serviceEntry(service, { backends: [echo] }),
        "conf/secret.yaml": tlsSecret("shop/cert", await ca.issue("DNS:a.example.com")),
      },
    });
    await placeFiles(join(istiod.home, "var/run/secrets/tokens"), { "istio-token": tokenFor("shop", "edge") });
    const flags = {
      name: "edge",
      namespace: "shop",
      ip: "127.0.0.8",
      labels: "app=edge",
      type: "router",
      "service-account": "edge",
      address: `127.0.0.1:${istiod.securePort}`,
      "admin-port": adminPort,
      "readiness-port": 0,
      "prometheus-port": 0,
    };
    const words = Object.entries(flags).flatMap(([flag, value]) => [`--${flag}`, String(value)]);
    const env = { ...process.env, ISTIO_HOME: istiod.home };
    const { stdout } = await run(process.execPath, [ISTIOCTL, "bootstrap", "--direct", ...words], { env });
    expect(stdout).not.toContain(tokenFor("shop", "edge").slice(0, 40));
    const envoy = await startEnvoy({
      binary: findEnvoy(process.env),
      workDir: await tempDir(),
      name: "edge",
      bootstrap: stdout,
      adminPort,
      clock: systemClock,
    });
    onTestFinished(() => envoy.stop());
    await envoy.ready(30_000);
    await listening(port);
    expect(await tlsCall({ port, name: "a.example.com", ca: ca.cert })).toMatchObject({ status: 200, by: "shop" });
  });
});
