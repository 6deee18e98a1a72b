import { expect, it } from "vitest";
import { manualClock } from "../../test/support/manual-clock.ts";
import { meshFrom } from "../../test/support/mesh-from.ts";
import { silentLog } from "../base/log.ts";
import { nextTurn } from "../base/slice.ts";
import { createProblemReport } from "./problem-report.ts";

const entry = `
apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: {name: web, namespace: shop}
spec: {hosts: [web.test], resolution: DNS, ports: [{number: 80, name: http, protocol: HTTP}]}
---`;
const routes = (host: string): string => `
apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: {name: web, namespace: shop}
spec: {hosts: [web.test], http: [{route: [{destination: {host: ${host}}}]}]}
`;

it("tells of a problem when it comes, and again only when it came back", async () => {
  const mesh = meshFrom(entry + routes("web.test"));
  const clock = manualClock();
  const said: string[] = [];
  const log = {
    ...silentLog,
    warn: (fields: object) => void said.push(String((fields as { readonly problem: string }).problem)),
  } as typeof silentLog;
  const report = createProblemReport({
    world: mesh.world,
    store: { origin: () => ({ source: "files", file: "a.yaml", line: 7 }), problems: () => mesh.problems },
    clock,
    log,
  });
  const passed = async (change?: string): Promise<readonly string[]> => {
    if (change !== undefined) mesh.change({ put: change });
    report.committed();
    report.committed();
    clock.advance(2_000);
    await nextTurn();
    return said.splice(0);
  };
  const dangling = "spec.http[0].route[0].destination.host: no service has the host gone.test";
  expect(await passed()).toEqual([]);
  expect(await passed(routes("gone.test"))).toEqual([dangling]);
  expect(await passed()).toEqual([]);
  expect(await passed(routes("web.test"))).toEqual([]);
  expect(await passed(routes("gone.test"))).toEqual([dangling]);
});

it("looks at first when the proxies that are awaited have had time to come", async () => {
  const mesh = meshFrom(entry + routes("web.test"));
  const clock = manualClock();
  let looks = 0;
  const report = createProblemReport({
    world: mesh.world,
    store: { origin: () => undefined, problems: () => mesh.problems },
    clock,
    log: silentLog,
    looked: () => looks++,
    proxiesAwaited: true,
  });
  const after = async (ms: number): Promise<number> => {
    report.committed();
    clock.advance(ms);
    await nextTurn();
    return looks;
  };
  expect(await after(4_000)).toBe(0);
  expect(await after(1_000)).toBe(1);
  expect(await after(250)).toBe(2);
});
