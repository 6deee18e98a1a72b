import { expect, it } from "vitest";
import { manualClock } from "../../test/support/manual-clock.ts";
import { limitedLog } from "./limited-log.ts";
import { silentLog } from "./log.ts";

it("writes so many lines a second, and says how many it left out", () => {
  const lines: unknown[] = [];
  const clock = manualClock();
  const write = (first: object | string, sentence?: string): void => void lines.push(sentence ?? first);
  const log = limitedLog({ ...silentLog, info: write, warn: write, error: write }, clock, 2);
  for (let index = 0; index < 5; index++) log[index % 2 === 0 ? "info" : "warn"]({}, `refused ${index}`);
  log.error("something else");
  expect(lines).toEqual(["refused 0", "refused 1", "something else"]);
  clock.advance(1_000);
  log.info("refused again");
  expect(lines.slice(3)).toEqual(["more of the same was not logged", "refused again"]);
});
