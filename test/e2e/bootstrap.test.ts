import { execFile } from "node:child_process";
import { join } from "node:path";
import { promisify } from "node:util";
import { describe, expect, it, onTestFinished } from "vitest";
import { startEnvoy } from "../../src/agent/envoy-process.ts";
import { findEnvoy } from "../../src/agent/find-envoy.ts";
import { systemClock } from "../../src/base/clock.ts";
import { call } from "../support/calls.ts";
import { tempDir } from "../support/cleanup.ts";
import { httpEcho } from "../support/echo.ts";
import { startIstiod } from "../support/istiod.ts";
import { freePort } from "../support/ports.ts";
import { listening } from "../support/proxy.ts";
import { SHOP_HOST, shopService } from "../support/shop.ts";

const run = promisify(execFile);

/** A listener that Envoy has from its start; a cluster without a name, which Envoy would not start with; and one for gateways. */
const bootstrapPatches = (port: number): string => `
apiVersion: networking.istio.io/v1alpha3
kind: EnvoyFilter
metadata: {name: early, namespace: shop}
spec:
  configPatches:
  - applyTo: BOOTSTRAP
    patch:
      operation: MERGE
      value:
        static_resources:
          listeners:
          - name: early
            address: {socket_address: {address: 127.0.0.1, port_value: ${port}}}
            filter_chains:
            - filters:
              - name: envoy.filters.network.http_connection_manager
                typed_config:
                  "@type": type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager
                  stat_prefix: early
                  http_filters: [{name: envoy.filters.http.router, typed_config: {"@type": type.googleapis.com/envoy.extensions.filters.http.router.v3.Router}}]
                  route_config: {virtual_hosts: [{name: all, domains: ["*"], routes: [{match: {prefix: /}, direct_response: {status: 200, body: {inline_string: from the bootstrap}}}]}]}
---
apiVersion: networking.istio.io/v1alpha3
kind: EnvoyFilter
metadata: {name: wrong, namespace: shop}
spec:
  configPatches:
  - {applyTo: BOOTSTRAP, patch: {operation: MERGE, value: {static_resources: {clusters: [{connect_timeout: 1s}]}}}}
  - {applyTo: BOOTSTRAP, match: {context: GATEWAY}, patch: {operation: MERGE, value: {admin: {address: {socket_address: {address: 127.0.0.1, port_value: 1}}}}}}
`;

describe.for(["delta", "sotw"])("istioctl bootstrap (%s)", (protocol) => {
  it("prints what makes a real Envoy a proxy of the mesh", async () => {
    const v1 = await httpEcho("v1");
    const [service, adminPort, readinessPort, prometheusPort] = [await freePort(), await freePort(), await freePort(), await freePort()];
    const patched = await freePort();
    const istiod = await startIstiod({
      files: { "conf/cart.yaml": shopService({ service, v1: v1.port, v2: v1.port }), "conf/patches.yaml": bootstrapPatches(patched) },
    });
    const flags = Object.entries({
      name: "client",
      namespace: "shop",
      ip: "127.0.0.1",
      labels: "app=client",
      protocol,
      address: `127.0.0.1:${istiod.grpcPort}`,
      interception: "NONE",
      "admin-port": adminPort,
      "readiness-port": readinessPort,
      "prometheus-port": prometheusPort,
    }).flatMap(([flag, value]) => [`--${flag}`, String(value)]);
    const { stdout, stderr } = await run(process.execPath, [join(import.meta.dirname, "../../dist/istioctl.mjs"), "bootstrap", ...flags], {
      env: { ...process.env, ISTIO_HOME: istiod.home },
    });

    const envoy = await startEnvoy({
      binary: findEnvoy(process.env),
      workDir: await tempDir(),
      name: "client",
      bootstrap: stdout,
      adminPort,
      clock: systemClock,
    });
    onTestFinished(() => envoy.stop());
    await envoy.ready(30_000);
    await listening(service);
    expect((await call({ port: service, host: SHOP_HOST })).by).toBe("v1");
    expect(await (await fetch(`http://127.0.0.1:${patched}/`)).text()).toBe("from the bootstrap");
    expect(stderr).toMatch(/^EnvoyFilter\/shop\/wrong is left out: .*name/);
    expect((await fetch(`http://127.0.0.1:${readinessPort}/healthz/ready`)).status).toBe(200);
    expect(await (await fetch(`http://127.0.0.1:${prometheusPort}/stats/prometheus`)).text()).toContain(
      `cluster_name="outbound|${service}||${SHOP_HOST}"`,
    );
  });
});
