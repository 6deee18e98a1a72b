import { describe, expect, it } from "vitest";
import { type ManualClock, manualClock } from "../../../test/support/manual-clock.ts";
import { EdgeError } from "../../base/errors.ts";
import { silentLog } from "../../base/log.ts";
import { makeCa } from "../../ca/ca-fixture.ts";
import { readCsr } from "../../pki/csr.ts";
import type { SignedChain } from "./ca-client.ts";
import { createWorkloadIdentity, type IdentityOptions, type WorkloadIdentity } from "./workload-identity.ts";

const LIFE_MS = 100_000;

interface Rig {
  readonly clock: ManualClock;
  readonly identity: WorkloadIdentity;
  readonly csrs: string[];
  readonly ca: { fault: Error | undefined };
  /** Lets time pass in small steps, and stand still while something is done that is not waiting: making keys and signing take time of their own. */
  pass(ms: number): Promise<void>;
}

function startRig(options: Partial<IdentityOptions> = {}, clock: ManualClock = manualClock()): Rig {
  const csrs: string[] = [];
  const ca: { fault: Error | undefined } = { fault: undefined };
  const sign = async (csr: string): Promise<SignedChain> => {
    csrs.push(csr);
    if (ca.fault !== undefined) throw ca.fault;
    const times = { notBefore: clock.now() - 120_000, notAfter: clock.now() + LIFE_MS };
    const { certificate } = await makeCa("leaf", times);
    return { chain: certificate.pem, roots: (await makeCa("root", times)).certificate.pem };
  };
  const shared = {
    spiffeId: "spiffe://cluster.local/ns/shop/sa/web",
    ttlMs: LIFE_MS,
    keyKind: "P-256" as const,
    renewAt: 0.5,
    jitter: 0,
    clock,
    log: silentLog,
    sign,
  };
  let asleep = 0;
  const sleep = async (ms: number): Promise<void> => {
    asleep += 1;
    await clock.sleep(ms);
    asleep -= 1;
  };
  const identity = createWorkloadIdentity({ ...shared, ...options, clock: { ...clock, ...options.clock, sleep } });
  void identity.run(new AbortController().signal);
  const turns = async (): Promise<void> => {
    for (let turn = 0; turn < 20 || asleep === 0; turn++) await new Promise((resolve) => setImmediate(resolve));
  };
  const pass = async (ms: number): Promise<void> => {
    for (let left = ms; left > 0; left -= 1_000) {
      clock.advance(Math.min(left, 1_000));
      await turns();
    }
  };
  return { clock, identity, csrs, ca, pass };
}

const signed = async (rig: Rig, times: number): Promise<void> => {
  await expect.poll(() => rig.csrs.length).toBe(times);
};

describe("a workload's identity", () => {
  it("is renewed at half its life, with a key of its own each time", async () => {
    const rig = startRig();
    await expect.poll(() => rig.identity.current).toBeDefined();
    const first = rig.identity.current;
    await rig.pass(49_000);
    expect(rig.csrs).toHaveLength(1);
    await rig.pass(2_000);
    await signed(rig, 2);
    await expect.poll(() => rig.identity.current?.serial).not.toBe(first?.serial);
    const [one, two] = await Promise.all([readCsr(rig.csrs[0] ?? ""), readCsr(rig.csrs[1] ?? "")]);
    expect(one.keyInfo.equals(two.keyInfo)).toBe(false);
    expect(rig.identity.current?.key.reveal()).not.toBe(first?.key.reveal());
  });

  it("is asked for again and again where the CA refuses, less and less often, and the old one counts until its end", async () => {
    const rig = startRig();
    await expect.poll(() => rig.identity.current).toBeDefined();
    rig.ca.fault = new EdgeError("control_plane_unreachable", "not today", { hint: "come tomorrow" });
    await rig.pass(52_000);
    await expect.poll(() => rig.identity.fault).toBe("not today (come tomorrow)");
    await rig.pass(20_000);
    expect(rig.identity.certificate()).toBe(rig.identity.current);
    expect(rig.csrs.length).toBeLessThan(12);
    await rig.pass(30_000);
    expect(rig.identity.certificate()).toBeUndefined();
    rig.ca.fault = undefined;
    await rig.pass(40_000);
    await expect.poll(() => rig.identity.certificate()).toBeDefined();
    expect(rig.identity.fault).toBeUndefined();
  });

  it("is asked for after twice the time each time, up to half a minute", async () => {
    const waits: number[] = [];
    const end = new AbortController();
    const sleep = async (ms: number): Promise<void> => {
      waits.push(ms);
      if (waits.length === 10) end.abort();
    };
    const fault = new EdgeError("control_plane_unreachable", "not today");
    const options = {
      spiffeId: "spiffe://cluster.local/ns/shop/sa/web",
      ttlMs: LIFE_MS,
      renewAt: 0.5,
      jitter: 0,
      log: silentLog,
      keyKind: "P-256" as const,
    };
    await createWorkloadIdentity({ ...options, clock: { ...manualClock(), sleep }, sign: () => Promise.reject(fault) }).run(end.signal);
    for (const [index, ms] of waits.entries()) {
      const most = Math.min(250 * 2 ** index, 30_000);
      expect(ms).toBeGreaterThanOrEqual(most / 2);
      expect(ms).toBeLessThanOrEqual(most);
    }
    expect(waits).toHaveLength(10);
  });

  it("is renewed in time, and not all the time, whatever becomes of this machine's clock", async () => {
    const shift = { ms: 0 };
    const hands = manualClock();
    const rig = startRig({ clock: { ...hands, now: () => hands.now() + shift.ms } }, hands);
    await expect.poll(() => rig.identity.current).toBeDefined();
    const renewedAfter = async (ms: number): Promise<void> => {
      const before = rig.identity.current?.serial;
      await rig.pass(ms);
      await expect.poll(() => rig.identity.current?.serial).not.toBe(before);
    };
    shift.ms = -200_000; // Back to before the start.
    await renewedAfter(31_000);
    await rig.pass(10_000);
    expect(rig.csrs).toHaveLength(2);
    shift.ms -= 5_000; // Back, but not as far: the certificate ends when it ends.
    await renewedAfter(41_000);
    expect(rig.csrs).toHaveLength(3);
    shift.ms = 40_000_000; // Ahead of the CA by hours.
    await rig.pass(120_000);
    expect(rig.csrs.length).toBeLessThan(20);
    await expect
      .poll(() => rig.identity.fault)
      .toBe("by this machine's clock a certificate that was just signed has ended (set the clock)");
    shift.ms = 0;
    await rig.pass(31_000);
    await expect.poll(() => rig.identity.fault).toBeUndefined();
    expect(rig.identity.certificate()).toBeDefined();
  });

  it("tells of new roots once, and joins those of the CA with those it is told of", async () => {
    const rig = startRig();
    await expect.poll(() => rig.identity.current).toBeDefined();
    let told = 0;
    rig.identity.follow(() => (told += 1));
    const own = rig.identity.roots();
    const other = (await makeCa("other", { notBefore: 0, notAfter: rig.clock.now() })).certificate.pem;
    rig.identity.setAnchors([other, own]);
    rig.identity.setAnchors([own, other]);
    expect(rig.identity.roots()).toContain(other);
    expect(rig.identity.roots().match(/BEGIN/g)).toHaveLength(2);
    rig.identity.setAnchors([]);
    expect(rig.identity.roots()).toBe(own);
    expect(told).toBe(2);
    rig.identity.setAnchors([other]);
    expect(rig.identity.roots()).toBe(own + other);
    rig.identity.setAnchors([own, other]);
    rig.identity.setAnchors([other]);
    expect(rig.identity.roots()).toBe(other); // Taken back, though it came with the certificate.
    expect(told).toBe(4);
    await rig.pass(51_000);
    await signed(rig, 2);
    await expect.poll(() => rig.identity.roots().match(/BEGIN/g)?.length).toBe(2); // What comes with the next one counts anew.
  });
});
