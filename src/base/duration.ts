/** Milliseconds (fractions allowed) as the fields of a google.protobuf.Duration. */
export function durationOfMs(ms: number): { seconds: bigint; nanos: number } {
  const seconds = Math.trunc(ms / 1000);
  return { seconds: BigInt(seconds), nanos: Math.round((ms - seconds * 1000) * 1e6) };
}

/** A google.protobuf.Duration in milliseconds. */
export const msOfDuration = (duration: { readonly seconds: bigint; readonly nanos: number }): number =>
  Number(duration.seconds) * 1000 + duration.nanos / 1e6;

/** Envoy counts nanoseconds in 64 bits, as Go does, and refuses a resource with a longer duration in it: 292 years. */
export const LONGEST_SECONDS = 9_223_372_035n;
