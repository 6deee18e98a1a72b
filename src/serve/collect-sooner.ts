import { setFlagsFromString } from "node:v8";

/**
 * From now on the old generation is collected when it has grown by 15 %, not when it has doubled: what is generated lives long, so collecting
 * sooner costs little and keeps much of the memory free. Not during the start, which only allocates: there it would cost 0.2 s.
 */
export function collectSooner(): void {
  setFlagsFromString("--heap-growing-percent=15");
}
