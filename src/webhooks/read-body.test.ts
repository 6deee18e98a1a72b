import type { IncomingMessage } from "node:http";
import { PassThrough } from "node:stream";
import { describe, expect, it } from "vitest";
import { manualClock } from "../../test/support/manual-clock.ts";
import { bodyBudget, LARGEST_BODY, readBody } from "./read-body.ts";

function requestOf(): { readonly request: IncomingMessage; readonly body: PassThrough } {
  const body = new PassThrough();
  return {
    request: Object.assign(body, { headers: { "content-type": "application/json; charset=utf-8" } }) as unknown as IncomingMessage,
    body,
  };
}

describe("readBody", () => {
  it("waits no longer for a body than the API server would for us", async () => {
    const clock = manualClock();
    const { request, body } = requestOf();
    const read = readBody(request, clock, bodyBudget(100));
    body.write('{"a":');
    clock.advance(3_999);
    clock.advance(1);
    expect(await read).toEqual({ status: 408, fault: "the body did not come within 4000 ms" });
  });

  it("holds no more of all bodies together than it may, and gives back what it held", async () => {
    const clock = manualClock();
    const budget = bodyBudget(10);
    const [first, second, third] = [requestOf(), requestOf(), requestOf()];
    const reads = [first, second].map(({ request }) => readBody(request, clock, budget));
    first.body.write("[1,2,3,4");
    await new Promise((resolve) => setImmediate(resolve));
    second.body.write("[1,2,3,4");
    expect(await reads[1]).toEqual({ status: 503, fault: "too much is being sent at once" });
    first.body.end("]");
    expect(await reads[0]).toEqual({ value: [1, 2, 3, 4] });
    const again = readBody(third.request, clock, budget);
    third.body.end("[1,2,3,4]");
    expect(await again).toEqual({ value: [1, 2, 3, 4] });
  });

  it("stops at the largest body, and where it breaks off", async () => {
    const clock = manualClock();
    const large = requestOf();
    const read = readBody(large.request, clock, bodyBudget(1e9));
    large.body.end(Buffer.alloc(LARGEST_BODY + 1, 32));
    expect(await read).toMatchObject({ status: 413 });
    const broken = requestOf();
    const cut = readBody(broken.request, clock, bodyBudget(1e9));
    broken.body.destroy();
    expect(await cut).toMatchObject({ status: 400 });
  });

  it("counts levels outside of texts only", async () => {
    const read = (text: string) => {
      const { request, body } = requestOf();
      body.end(text);
      return readBody(request, manualClock(), bodyBudget(1e9));
    };
    expect(await read(JSON.stringify({ text: `\\"${"[".repeat(500)}` }))).toHaveProperty("value");
    expect(await read(`${"[".repeat(101)}${"]".repeat(101)}`)).toMatchObject({ status: 400, fault: expect.stringMatching(/100 levels/) });
    expect(await read(`[${"[],".repeat(1_000)}1]`)).toHaveProperty("value");
  });
});
