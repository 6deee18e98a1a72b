import { create } from "@bufbuild/protobuf";
import { type Duration, DurationSchema } from "@bufbuild/protobuf/wkt";

const NANOS: Readonly<Record<string, bigint>> = {
  ns: 1n,
  us: 1_000n,
  µs: 1_000n,
  μs: 1_000n,
  ms: 1_000_000n,
  s: 1_000_000_000n,
  m: 60_000_000_000n,
  h: 3_600_000_000_000n,
};
const PART = /(\d*)(?:\.(\d*))?(ns|us|\u00b5s|\u03bcs|ms|s|m|h)/y;
const SIMPLE_SECONDS = /^(\d{1,12})s$/;
const SECOND = 1_000_000_000n;
const LONGEST_TEXT = 64;
/** The bound of google.protobuf.Duration: about 10,000 years. */
const MOST_SECONDS = 315_576_000_000n;

/**
 * Reads a duration as Go's time.ParseDuration writes it (`100ms`, `1h30m`, `-1.5s`, `0`), which is what Istio accepts everywhere
 * and a superset of protobuf's own form (`0.1s`). Anything else gives undefined.
 */
export function parseGoDuration(text: string): Duration | undefined {
  const simple = SIMPLE_SECONDS.exec(text);
  if (simple?.[1] !== undefined) return durationOf(BigInt(simple[1]) * SECOND);
  if (text.length > LONGEST_TEXT) return undefined;
  const negative = text.startsWith("-");
  const body = negative || text.startsWith("+") ? text.slice(1) : text;
  if (body === "0") return durationOf(0n);
  if (body === "") return undefined;
  let nanos = 0n;
  for (let at = 0; at < body.length; ) {
    PART.lastIndex = at;
    const part = PART.exec(body);
    if (part === null) return undefined;
    const [whole, units = "", fraction = "", unit = ""] = part;
    const scale = NANOS[unit];
    if (scale === undefined || (units === "" && fraction === "")) return undefined;
    nanos += BigInt(units === "" ? 0 : units) * scale + fractionOf(fraction, scale);
    at += whole.length;
  }
  return durationOf(negative ? -nanos : nanos);
}

/** `.fraction` of a unit in whole nanoseconds, the rest cut off as Go does. */
const fractionOf = (fraction: string, scale: bigint): bigint =>
  fraction === "" ? 0n : (BigInt(fraction) * scale) / 10n ** BigInt(fraction.length);

function durationOf(nanos: bigint): Duration | undefined {
  const seconds = nanos / SECOND;
  if (seconds > MOST_SECONDS || seconds < -MOST_SECONDS) return undefined;
  return create(DurationSchema, { seconds, nanos: Number(nanos % SECOND) });
}
