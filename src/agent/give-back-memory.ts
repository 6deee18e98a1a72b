import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import type { Clock } from "../base/clock.ts";

/** Configuration beyond which it is worth looking after what it left behind. */
const LARGE_BYTES = 512 * 1024;
const QUIET_MS = 1_000;

/**
 * Gives the memory back that a large configuration took on its way through: V8 by itself would collect it when as much again has come, which in
 * an agent may be never. Call the result with the bytes of each message.
 */
export function giveBackMemory(clock: Clock): (bytes: number) => void {
  setFlagsFromString("--expose-gc");
  const collect = runInNewContext("gc") as () => void;
  let passed = 0;
  let cancel: (() => void) | undefined;
  return (bytes) => {
    passed += bytes;
    if (passed < LARGE_BYTES) return;
    cancel?.();
    cancel = clock.after(QUIET_MS, () => {
      passed = 0;
      collect();
    });
  };
}
