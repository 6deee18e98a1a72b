import { describe, expect, it } from "vitest";
import { nextTurn } from "../base/slice.ts";
import { SharedPace } from "./shared-pace.ts";

const KB = 1024;

describe("SharedPace", () => {
  it("lets a megabyte go in a turn, and the rest in later ones, in the order in which they asked", async () => {
    const pace = new SharedPace();
    const went: number[] = [];
    for (let index = 0; index < 20; index++) pace.take(128 * KB, () => went.push(index));
    expect(went).toEqual([0, 1, 2, 3, 4, 5, 6, 7]);
    await nextTurn();
    expect(went).toHaveLength(16);
    await nextTurn();
    expect(went).toEqual(Array.from({ length: 20 }, (_, index) => index));
    pace.take(128 * KB, () => went.push(20));
    expect(went).toHaveLength(21);
  });

  it("lets those who come while others wait stand behind them, but never keeps what is small", async () => {
    const pace = new SharedPace();
    const went: string[] = [];
    const again = (name: string, times: number): void =>
      pace.take(512 * KB, () => {
        went.push(name);
        if (times > 1) again(name, times - 1);
      });
    for (const name of ["a", "b", "c"]) again(name, 2);
    expect(went).toEqual(["a", "a"]);
    pace.take(1 * KB, () => went.push("small"));
    expect(went).toEqual(["a", "a", "small"]);
    for (let turn = 0; turn < 3; turn++) await nextTurn();
    expect(went).toEqual(["a", "a", "small", "b", "c", "b", "c"]);
  });
});
