import { describe, expect, it } from "vitest";
import { manualClock } from "../../test/support/manual-clock.ts";
import { silentLog } from "../base/log.ts";
import { KubeError } from "../kube/kube-error.ts";
import { SecretPermissions } from "./secret-permissions.ts";

/** An API server that answers as it is told to. */
function permissions(answers: (boolean | KubeError)[]) {
  const clock = manualClock();
  const asked: unknown[] = [];
  const client = {
    request: async ({ body }: { readonly body?: unknown }) => {
      asked.push((body as { readonly spec: { readonly user: string } }).spec.user);
      const answer = answers.length > 1 ? answers.shift() : answers[0];
      if (answer instanceof KubeError) throw answer;
      return { status: { allowed: answer } };
    },
  };
  let changes = 0;
  const held = new SecretPermissions({ client, clock, log: silentLog });
  held.follow(() => {
    changes += 1;
  });
  const may = (): boolean | undefined => held.mayRead({ namespace: "shop", serviceAccount: "edge" });
  const pass = async (ms: number): Promise<void> => {
    clock.advance(ms);
    await new Promise((resolve) => setImmediate(resolve));
  };
  return { may, pass, asked, held, changes: () => changes };
}

const away = new KubeError({ status: 0, reason: "Unreachable", message: "no" });

describe("who may read secrets", () => {
  it("is not known before the first answer, and told when it comes", async () => {
    const { may, pass, asked, changes } = permissions([true]);
    expect([may(), may()]).toEqual([undefined, undefined]);
    await pass(0);
    expect([may(), changes(), asked]).toEqual([true, 1, ["system:serviceaccount:shop:edge"]]);
  });

  it("is not asked for without end: beyond so many accounts it is nobody", async () => {
    const { asked, held } = permissions([true]);
    const may = (number: number): boolean | undefined => held.mayRead({ namespace: "shop", serviceAccount: `edge-${number}` });
    for (let number = 0; number < 10_000; number++) may(number);
    expect([may(10_000), asked.length]).toEqual([false, 10_000]);
  });

  it("is asked for again for others when those of before have gone", async () => {
    const { asked, held, pass } = permissions([true]);
    const may = (number: number): boolean | undefined => held.mayRead({ namespace: "shop", serviceAccount: `edge-${number}` });
    for (let number = 0; number < 10_000; number++) may(number);
    await pass(59 * 60_000);
    may(0);
    await pass(60_000);
    expect([may(10_000), may(0)]).toEqual([undefined, true]);
    await pass(0);
    asked.length = 0;
    await pass(60_000);
    expect([may(10_000), asked.includes("system:serviceaccount:shop:edge-0"), asked.includes("system:serviceaccount:shop:edge-1")]).toEqual(
      [true, true, false],
    );
  });

  it("is asked for anew every minute, and told when it is another", async () => {
    const { may, pass, asked, changes } = permissions([true, true, false]);
    may();
    await pass(0);
    await pass(60_000);
    expect([may(), changes(), asked.length]).toEqual([true, 1, 2]);
    await pass(60_000);
    expect([may(), changes()]).toEqual([false, 2]);
  });

  it("stays as it was while the API server is away", async () => {
    const { may, pass, changes } = permissions([true, away, away, false]);
    may();
    await pass(0);
    await pass(60_000);
    await pass(2_000);
    expect([may(), changes()]).toEqual([true, 1]);
    await pass(2_000);
    expect([may(), changes()]).toEqual([false, 2]);
  });

  it("is nobody while nobody could be asked", async () => {
    const { may, pass } = permissions([away]);
    may();
    await pass(0);
    await pass(2_000);
    expect(may()).toBe(undefined);
  });
});
