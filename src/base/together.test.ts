import { expect, it } from "vitest";
import { together } from "./together.ts";

it("waits for all, and then throws what failed first in order", async () => {
  let ended = false;
  const slow = new Promise<string>((resolve) => {
    setImmediate(() => {
      ended = true;
      resolve("slow");
    });
  });
  await expect(together([slow, Promise.reject(new Error("no"))])).rejects.toThrow("no");
  expect(ended).toBe(true);
  expect(await together([slow, 1])).toEqual(["slow", 1]);
});
