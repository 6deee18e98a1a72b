import { describe, expect, it } from "vitest";
import { manualClock } from "../../../test/support/manual-clock.ts";
import { firstCertificate } from "./first-certificate.ts";
import type { WorkloadIdentity } from "./workload-identity.ts";

function identity(current?: object) {
  const followers = new Set<() => void>();
  const follow = (changed: () => void) => {
    followers.add(changed);
    return () => followers.delete(changed);
  };
  return { followers, identity: { current, certificate: () => current, follow } as unknown as WorkloadIdentity };
}

/** Whether it is over once everything that is due has happened. */
async function isOver(promise: Promise<void>): Promise<boolean> {
  let over = false;
  void promise.then(() => {
    over = true;
  });
  for (let turn = 0; turn < 5; turn++) await Promise.resolve();
  return over;
}

describe("the first certificate", () => {
  it("is waited for until it comes, or for long enough, and not at all where there is one", async () => {
    const clock = manualClock();
    expect(await isOver(firstCertificate(identity({}).identity, clock))).toBe(true);
    const [coming, missing] = [identity(), identity()];
    const came = firstCertificate(coming.identity, clock);
    const never = firstCertificate(missing.identity, clock);
    expect(await isOver(came)).toBe(false);
    for (const tell of coming.followers) tell();
    expect(await isOver(came)).toBe(true);
    clock.advance(1_999);
    expect(await isOver(never)).toBe(false);
    clock.advance(1);
    expect(await isOver(never)).toBe(true);
    expect([coming.followers.size, missing.followers.size, clock.waiting]).toEqual([0, 0, 0]);
  });
});
