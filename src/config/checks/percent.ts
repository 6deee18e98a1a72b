const SMALLEST_SHARE = 0.0001;

/** A whole percentage. */
export const percentFault = (value: number): string | undefined =>
  value >= 0 && value <= 100 ? undefined : `${value} is not a percentage from 0 to 100`;

/** A share of requests: Envoy counts in millionths, so anything below 0.0001 percent but zero would be lost. */
export const shareFault = (value: number): string | undefined =>
  value === 0 || (value >= SMALLEST_SHARE && value <= 100)
    ? undefined
    : `${value} is neither 0 nor a percentage from ${SMALLEST_SHARE} to 100`;
