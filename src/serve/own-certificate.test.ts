import { expect, it } from "vitest";
import { manualClock } from "../../test/support/manual-clock.ts";
import type { Authority } from "../ca/authority.ts";
import { ownCertificate } from "./own-certificate.ts";

const HOUR_MS = 3_600_000;
const LIFE_MS = 24 * HOUR_MS;

/** A certificate of an authority that only notes when it was asked. */
async function rig() {
  const hands = manualClock();
  const shift = { ms: 0 };
  const clock = { ...hands, now: () => hands.now() + shift.ms };
  const asked: number[] = [];
  const authority = {
    material: { certificate: { pem: "CA" } },
    signServer() {
      asked.push(clock.now());
      return { certificate: `${asked.length}`, intermediates: [], roots: "R", notAfter: clock.now() + LIFE_MS };
    },
  } as unknown as Authority;
  const certificate = await ownCertificate({ authority, dnsNames: ["istiod.a.svc"], addresses: [], clock });
  const told: string[] = [];
  certificate.follow(({ chain }) => void told.push(chain));
  return { hands, shift, asked, told, certificate };
}

it("istiod's own certificate is renewed at half its life, once", async () => {
  const { hands, asked, told } = await rig();
  for (let minute = 0; minute < 13 * 60; minute += 1) hands.advance(60_000);
  expect([asked.length, told]).toEqual([2, ["2CA"]]);
});

it("istiod's own certificate is another one soon after the clock was set to where it is not valid, and then stays", async () => {
  const { hands, shift, asked } = await rig();
  const settle = (): void => {
    for (let turn = 0; turn < 60; turn += 1) hands.advance(1_000);
  };
  for (const [index, ms] of [2 * LIFE_MS, 0, -2 * HOUR_MS].entries()) {
    shift.ms = ms;
    settle();
    expect(asked).toHaveLength(index + 2);
    settle();
    expect(asked).toHaveLength(index + 2);
  }
});
