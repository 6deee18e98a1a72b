import assert from "node:assert/strict";
import { describe, it } from "vitest";
import { CLUSTER_TYPE } from "../../src/wire/type-urls.ts";
import { startIstiod } from "../support/istiod.ts";
import { eventually } from "../support/wait.ts";
import { subscribe } from "../support/xds-subscriber.ts";

const entry = (name: string): string => `apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: {name: ${name}, namespace: shop}
spec: {hosts: [${name}.test], ports: [{number: 80, name: http, protocol: HTTP}], resolution: DNS, endpoints: [{address: ${name}.example.com}]}
`;

describe("changes after a quiet time", () => {
  it("the first is pushed at once, and those that follow closely are gathered, however long that is set to take", async () => {
    const quiet = { PILOT_DEBOUNCE_AFTER: "5s", PILOT_DEBOUNCE_MAX: "300s" };
    const istiod = await startIstiod({ files: { "conf/zero.yaml": entry("zero") }, env: quiet });
    const answers = subscribe({
      ...{ port: istiod.grpcPort, variant: "delta", typeUrl: CLUSTER_TYPE },
      node: { id: "sidecar~10.0.0.1~web.shop~shop.svc.cluster.local" },
    });
    await eventually("a proxy is served", () => answers.length === 1);
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

  it("what is there at the start is in force at once, whatever else the sources say first", async () => {
    const quiet = { PILOT_DEBOUNCE_AFTER: "300s", PILOT_DEBOUNCE_MAX: "300s" };
    const istiod = await startIstiod({ files: { "conf/zero.yaml": entry("zero") }, env: quiet });
    const answers = subscribe({
      ...{ port: istiod.grpcPort, variant: "delta", typeUrl: CLUSTER_TYPE },
      node: { id: "sidecar~10.0.0.1~web.shop~shop.svc.cluster.local" },
    });
    await eventually("a proxy is served", () => answers.length === 1);
    assert.equal(answers[0]?.resources.filter(({ value }) => Buffer.from(value).includes("zero.test")).length, 1);
  });
});
