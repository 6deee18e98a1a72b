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

describe.for(["delta", "sotw"])("istioctl bootstrap (%s)", (protocol) => {
  it("prints what makes a real Envoy a proxy of the mesh", async () => {
    const v1 = await httpEcho("v1");
    const [service, adminPort, readinessPort, prometheusPort] = [await freePort(), await freePort(), await freePort(), await freePort()];
    const istiod = await startIstiod({ files: { "conf/cart.yaml": shopService({ service, v1: v1.port, v2: v1.port }) } });
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
    const { stdout } = await run(process.execPath, [join(import.meta.dirname, "../../dist/istioctl.mjs"), "bootstrap", ...flags], {
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
    expect((await fetch(`http://127.0.0.1:${readinessPort}/healthz/ready`)).status).toBe(200);
    expect(await (await fetch(`http://127.0.0.1:${prometheusPort}/stats/prometheus`)).text()).toContain(
      `cluster_name="outbound|${service}||${SHOP_HOST}"`,
    );
  });
});
