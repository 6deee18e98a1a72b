/*
 * Loaded into a program under test (`node --import`): what it would do by itself after ten seconds or more it never does. So what is done nevertheless was
 * asked for, however long the test takes.
 */

const LONG_MS = 10_000;
const NEVER_MS = 2 ** 31 - 1;
const real = globalThis.setTimeout;

globalThis.setTimeout = Object.assign(
  (fn: (...given: unknown[]) => void, ms?: number, ...given: unknown[]) => real(fn, (ms ?? 0) < LONG_MS ? ms : NEVER_MS, ...given),
  real,
) as typeof setTimeout;
