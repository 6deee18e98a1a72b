import { createServer, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { describe, expect, it, onTestFinished } from "vitest";
import { systemClock } from "../../src/base/clock.ts";
import { call, tally } from "../support/calls.ts";
import { httpEcho } from "../support/echo.ts";
import { SERVICE_HOST, serviceEntry, startServiceMesh } from "../support/service-mesh.ts";
import { eventually } from "../support/wait.ts";

const retries = (spec: string): string => `
apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: {name: svc, namespace: shop}
spec: {hosts: [${SERVICE_HOST}], http: [{route: [{destination: {host: ${SERVICE_HOST}}}], retries: {${spec}}}]}
`;

/** Refuses every first try and keeps the further ones waiting. */
async function reluctantServer(): Promise<{ readonly port: number; readonly waiting: ServerResponse[] }> {
  const waiting: ServerResponse[] = [];
  const server = createServer((request, response) => {
    if (request.headers["x-envoy-attempt-count"] === "1") response.writeHead(503).end();
    else waiting.push(response);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  onTestFinished(() => {
    server.close();
    server.closeAllConnections();
  });
  return { port: (server.address() as AddressInfo).port, waiting };
}

describe("retries", () => {
  it("at the same time are as many as the budget allows", async () => {
    const server = await reluctantServer();
    const { target, proxy } = await startServiceMesh({
      backends: [server],
      rule: "trafficPolicy: {retryBudget: {percent: 1, minRetryConcurrency: 2}}",
      config: retries("attempts: 3, retryOn: 5xx, backoff: 1ms"),
    });
    const statuses: number[] = [];
    const answered = Promise.all(Array.from({ length: 10 }, async () => statuses.push((await call(target)).status)));
    await eventually("two are tried again", () => server.waiting.length === 2);
    await eventually("the others are not", () => statuses.length === 8);
    expect(new Set(statuses)).toEqual(new Set([503]));
    for (const response of server.waiting) response.writeHead(200).end();
    await answered;
    expect(statuses.slice(8)).toEqual([200, 200]);
    expect(server.waiting).toHaveLength(2);
    await proxy.assertNothingRejected();
  });

  it("go to another server than the try before, where the rule says so", async () => {
    const [good, bad] = [await httpEcho("good"), await httpEcho("bad", { status: () => 503 })];
    const { target, istiod } = await startServiceMesh({
      backends: [good, bad],
      rule: "trafficPolicy: {loadBalancer: {simple: RANDOM}}",
      config: retries("attempts: 1, retryOn: 5xx, backoff: 1ms, retryIgnorePreviousHosts: true"),
    });
    expect((await tally(200, target)).good).toBeGreaterThan(185);
    await istiod.write("conf/more.yaml", retries("attempts: 1, retryOn: 5xx, backoff: 1ms, retryIgnorePreviousHosts: false"));
    await eventually("many a retry goes to the same server", async () => ((await tally(100, target)).bad ?? 0) > 12);
  });
});

describe("a server that has just come", () => {
  it("gets few requests while it warms up", async () => {
    const [old, young] = [await httpEcho("old"), await httpEcho("young")];
    // Long beside what the requests of the test take on a busy machine.
    const windowMs = 15_000;
    const { target, istiod } = await startServiceMesh({
      backends: [old],
      rule: "trafficPolicy: {loadBalancer: {simple: ROUND_ROBIN, warmup: {duration: 15s, minimumPercent: 5, aggression: 0.1}}}",
    });
    const start = systemClock.monotonic();
    await eventually("the first server is warm", () => systemClock.monotonic() - start > windowMs + 500);
    await istiod.write("conf/service.yaml", serviceEntry(target.port, { backends: [old, young] }));
    await eventually("the other one is used", async () => ((await tally(20, target)).young ?? 0) > 0);
    const early = await tally(60, target);
    expect(early.young ?? 0).toBeLessThan(20);
    await eventually("it has its share in the end", async () => ((await tally(60, target)).young ?? 0) >= 28);
  });
});
