import { existsSync, readFileSync } from "node:fs";

/*
 * Loaded into a program under test (`node --import`): its wall clock is off by as many ms as the file says that SHIFTED_CLOCK_FILE names, from the
 * next SIGUSR2 on. The clock that only measures is left alone, as it is when somebody sets a machine's date.
 */

const file = process.env.SHIFTED_CLOCK_FILE ?? "";
const real = Date.now.bind(Date);
let shift = 0;

const RealDate = Date;
class ShiftedDate extends RealDate {
  constructor(...given: readonly unknown[]) {
    super(...((given.length === 0 ? [real() + shift] : given) as []));
  }

  static override now(): number {
    return real() + shift;
  }
}
globalThis.Date = ShiftedDate as DateConstructor;

process.on("SIGUSR2", () => {
  if (existsSync(file)) shift = Number(readFileSync(file, "utf8"));
});
