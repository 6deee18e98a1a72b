import { onTestFinished } from "vitest";
import { type Answer, type Call, call } from "./calls.ts";
import { eventually } from "./wait.ts";

/** Requests that go on all the time, to show that an event disturbed nobody. */
export interface Traffic {
  /** Resolves when `count` more requests were answered well. */
  more(count: number): Promise<void>;
  /** Ends it and gives what went wrong, one text per failed request. */
  stop(): Promise<readonly string[]>;
}

/** Calls without pause, one request after the other; from this machine, unless `via` says how else. */
export function keepCalling(target: Call, via: (target: Call) => Promise<Answer> = call): Traffic {
  const failures: string[] = [];
  let good = 0;
  let stopped = false;
  const loop = (async () => {
    while (!stopped) {
      const answer = await via(target).catch((error: unknown) => String(error));
      if (typeof answer !== "string" && answer.status === 200) good += 1;
      else failures.push(typeof answer === "string" ? answer : `status ${answer.status}: ${answer.body}`);
    }
  })();
  const stop = async (): Promise<readonly string[]> => {
    stopped = true;
    await loop;
    return failures;
  };
  onTestFinished(async () => void (await stop()));
  return {
    async more(count) {
      const goal = good + count;
      await eventually(`${count} more requests are answered`, () => good >= goal);
    },
    stop,
  };
}
