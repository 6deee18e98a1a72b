import { expect, it } from "vitest";
import { manualClock } from "../../../test/support/manual-clock.ts";
import { countSigning } from "./count-signing.ts";

it("counts what the CA is asked, what failed, what was asked again, and how long it took", async () => {
  const clock = manualClock();
  let fails = true;
  const signing = countSigning(async () => {
    clock.advance(40);
    if (fails) throw new Error("refused");
    return { chain: "", roots: "" };
  }, clock);
  await expect(signing.sign("csr", 1)).rejects.toThrow("refused");
  fails = false;
  await signing.sign("csr", 1);
  await signing.sign("csr", 1);
  const csr = (value: number) => [{ labels: { request_type: "csr" }, value }];
  expect(Object.fromEntries(signing.metrics.map(({ name, values }) => [name, values()]))).toEqual({
    num_outgoing_requests: csr(3),
    num_failed_outgoing_requests: csr(1),
    num_outgoing_retries: csr(1),
    outgoing_latency: csr(120),
  });
});
