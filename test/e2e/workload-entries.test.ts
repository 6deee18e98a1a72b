import { describe, expect, it } from "vitest";
import { tally } from "../support/calls.ts";
import { httpEcho } from "../support/echo.ts";
import { startIstiod } from "../support/istiod.ts";
import { freePort } from "../support/ports.ts";
import { listening, startProxy } from "../support/proxy.ts";
import { SHOP_HOST } from "../support/shop.ts";
import { eventually } from "../support/wait.ts";

const selecting = (port: number): string => `
apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: {name: cart, namespace: shop}
spec:
  hosts: [${SHOP_HOST}]
  location: MESH_INTERNAL
  resolution: STATIC
  ports: [{number: ${port}, name: http, protocol: HTTP}]
  workloadSelector: {labels: {app: cart}}
`;

const entry = (
  name: string,
  port: number,
  { app = "cart", weight = 1 }: { readonly app?: string; readonly weight?: number } = {},
): string => `
apiVersion: networking.istio.io/v1
kind: WorkloadEntry
metadata: {name: ${name}, namespace: shop}
spec: {address: 127.0.0.1, labels: {app: ${app}}, weight: ${weight}, ports: {http: ${port}}}
`;

describe("a service whose members are WorkloadEntries", () => {
  it("follows members that come, go, are relabelled and weighted", async () => {
    const [v1, v2] = [await httpEcho("v1"), await httpEcho("v2")];
    const port = await freePort();
    const istiod = await startIstiod({ files: { "conf/cart.yaml": selecting(port), "conf/v1.yaml": entry("v1", v1.port) } });
    const proxy = await startProxy({ xdsPort: istiod.grpcPort, name: "client", address: "127.0.0.1" });
    await listening(port);
    const target = { port, host: SHOP_HOST };
    expect(await tally(20, target)).toEqual({ v1: 20 });

    await istiod.write("conf/v2.yaml", entry("v2", v2.port, { weight: 4 }));
    await eventually("the new member answers", async () => ((await tally(20, target)).v2 ?? 0) > 0);
    const { v1: light = 0, v2: heavy = 0 } = await tally(200, target);
    expect(heavy).toBeGreaterThan(2 * light);
    expect(light).toBeGreaterThan(0);

    await istiod.write("conf/v1.yaml", entry("v1", v1.port, { app: "retired" }));
    await eventually("only the other answers", async () => (await tally(20, target)).v2 === 20);
    await istiod.remove("conf/v2.yaml");
    await eventually("nobody answers", async () => (await tally(8, target))["status 503"] === 8);
    await proxy.assertNothingRejected();
  });

  it("sends nobody to a member that is not healthy, while another is", async () => {
    const [well, ill] = [await httpEcho("well"), await httpEcho("ill")];
    const port = await freePort();
    const checked = entry("ill", ill.port).replace("name: ill,", 'name: ill, annotations: {proxy.istio.io/health-checks-enabled: "true"},');
    const health = (status: string): string => `${checked.trimEnd()}\nstatus: {conditions: [{type: Healthy, status: "${status}"}]}\n`;
    const istiod = await startIstiod({
      files: { "conf/cart.yaml": selecting(port), "conf/well.yaml": entry("well", well.port), "conf/ill.yaml": health("False") },
    });
    const proxy = await startProxy({ xdsPort: istiod.grpcPort, name: "client", address: "127.0.0.1" });
    await listening(port);
    const target = { port, host: SHOP_HOST };
    expect(await tally(20, target)).toEqual({ well: 20 });
    expect(await proxy.admin("/clusters")).toContain(`127.0.0.1:${ill.port}::health_flags::/failed_eds_health`);
    await istiod.write("conf/ill.yaml", health("True"));
    await eventually("both answer", async () => Object.keys(await tally(20, target)).length === 2);
    await proxy.assertNothingRejected();
  });
});
