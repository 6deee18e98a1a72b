import assert from "node:assert/strict";
import { describe, it } from "vitest";
import { systemClock } from "../../src/base/clock.ts";
import { CLUSTER_TYPE } from "../../src/wire/type-urls.ts";
import { type Istiod, startIstiod } from "../support/istiod.ts";
import { eventually } from "../support/wait.ts";
import { type Answer, subscribe } from "../support/xds-subscriber.ts";

const entry = (name: string): string => `apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: {name: ${name}, namespace: shop}
spec: {hosts: [${name}.test], ports: [{number: 80, name: http, protocol: HTTP}], resolution: DNS, endpoints: [{address: ${name}.example.com}]}
`;

/** A control plane that gathers changes for so long, and what it answers a proxy, which has been served. */
async function serving(debounceAfter: string): Promise<{ readonly istiod: Istiod; readonly answers: readonly Answer[] }> {
  const quiet = { PILOT_DEBOUNCE_AFTER: debounceAfter, PILOT_DEBOUNCE_MAX: "300s" };
  const istiod = await startIstiod({ files: { "conf/zero.yaml": entry("zero") }, env: quiet });
  const answers = subscribe({
    ...{ port: istiod.grpcPort, variant: "delta", typeUrl: CLUSTER_TYPE },
    node: { id: "sidecar~10.0.0.1~web.shop~shop.svc.cluster.local" },
  });
  await eventually("a proxy is served", () => answers.length === 1);
  return { istiod, answers };
}

const GATHERED_MS = 5_000;

/** Goes on making changes, so long after one another, until something is over. */
async function whileChanging(istiod: Istiod, everyMs: number, over: () => Promise<unknown>): Promise<void> {
  const changes = new AbortController();
  const going = (async () => {
    for (let turn = 0; !changes.signal.aborted; turn += 1) {
      await istiod.write(`conf/other-${turn}.yaml`, entry(`other-${turn}`));
      await systemClock.sleep(everyMs);
    }
  })();
  try {
    await over();
  } finally {
    changes.abort();
    await going;
  }
}

describe("changes after a quiet time", () => {
  it("the first is pushed at once, alone, although others follow without end", async () => {
    const { istiod, answers } = await serving(`${GATHERED_MS}ms`);
    await systemClock.sleep(2 * GATHERED_MS); // The start counts as a change.
    // Whoever waits for quiet before the first waits for as long as these go on.
    await whileChanging(istiod, GATHERED_MS / 10, () => eventually("the first change arrives", () => answers.length === 2));
    assert.equal(answers[1]?.resources.length, 1);
    assert.ok(Buffer.from(answers[1]?.resources[0]?.value ?? []).includes("other-0.test"));
  });

  it("those that follow the first closely are gathered", async () => {
    const { istiod, answers } = await serving(`${GATHERED_MS}ms`);
    const pushes = (): Promise<number> => istiod.metric("pilot_push_triggers");
    const before = await pushes();
    await istiod.write("conf/one.yaml", entry("one"));
    await eventually("the first change arrives", () => answers.length === 2);
    const following = ["two", "three", "four", "five"];
    for (const name of following) await istiod.write(`conf/${name}.yaml`, entry(name));
    await eventually("the others arrive", () => answers.slice(2).flatMap(({ resources }) => resources).length === following.length);
    assert.equal(answers.length, 3, "in one response");
    assert.equal((await pushes()) - before, 2);
  });

  it("those that follow without end arrive meanwhile, and do not wait for quiet", async () => {
    const { istiod, answers } = await serving("100ms");
    await whileChanging(istiod, 20, () => eventually("some of them arrive, again and again", () => answers.length >= 4));
  });

  it("what is there at the start is in force at once, whatever else the sources say first", async () => {
    const { answers } = await serving("300s");
    assert.equal(answers[0]?.resources.filter(({ value }) => Buffer.from(value).includes("zero.test")).length, 1);
  });
});
