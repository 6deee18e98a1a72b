const SUFFIXES: Readonly<Record<string, readonly [base: bigint, power: number]>> = {
  Ki: [1024n, 1],
  Mi: [1024n, 2],
  Gi: [1024n, 3],
  Ti: [1024n, 4],
  Pi: [1024n, 5],
  Ei: [1024n, 6],
};
const DECIMAL: Readonly<Record<string, number>> = { n: -9, u: -6, m: -3, "": 0, k: 3, M: 6, G: 9, T: 12, P: 15, E: 18 };
const QUANTITY = /^([+-]?)(\d{1,20})?(?:\.(\d{0,20}))?(?:(Ki|Mi|Gi|Ti|Pi|Ei|[numkMGTPE])|[eE]([+-]?\d{1,2}))?$/;
const NANO = 1_000_000_000n;

/**
 * A quantity of Kubernetes in the form the API server gives it: the largest suffix that needs no fraction, so `2000m` is `2` and `1024Mi`
 * is `1Gi`. Undefined where the text is no quantity.
 */
export function canonicalQuantity(text: string): string | undefined {
  const match = QUANTITY.exec(text.trim());
  if (match === null || (match[2] === undefined && !match[3])) return undefined;
  const [, sign = "", whole = "0", fraction = "", suffix = "", exponent] = match;
  const binary = SUFFIXES[suffix];
  const scale = binary === undefined ? powerOfTen(exponent === undefined ? (DECIMAL[suffix] ?? 0) : Number(exponent)) : undefined;
  const digits = BigInt(whole + fraction);
  const unit = 10n ** BigInt(fraction.length);
  const nano =
    binary === undefined ? mulDiv(digits * NANO, scale ?? [1n, 1n], unit) : (digits * NANO * binary[0] ** BigInt(binary[1])) / unit;
  const minus = sign === "-" && nano !== 0n ? "-" : "";
  return minus + (binary !== undefined && nano % NANO === 0n ? binaryForm(nano / NANO) : decimalForm(nano));
}

const powerOfTen = (power: number): readonly [bigint, bigint] => (power >= 0 ? [10n ** BigInt(power), 1n] : [1n, 10n ** BigInt(-power)]);

/** Rounded up, as Kubernetes rounds what is finer than a billionth. */
function mulDiv(value: bigint, [up, down]: readonly [bigint, bigint], unit: bigint): bigint {
  const divisor = down * unit;
  return (value * up + divisor - 1n) / divisor;
}

function binaryForm(value: bigint): string {
  if (value === 0n) return "0";
  for (const [suffix, [base, power]] of Object.entries(SUFFIXES).reverse()) {
    const unit = base ** BigInt(power);
    if (value % unit === 0n) return `${value / unit}${suffix}`;
  }
  return String(value);
}

function decimalForm(nano: bigint): string {
  if (nano === 0n) return "0";
  for (const suffix of ["E", "P", "T", "G", "M", "k", "", "m", "u"]) {
    const unit = 10n ** BigInt((DECIMAL[suffix] ?? 0) + 9);
    if (nano % unit === 0n) return `${nano / unit}${suffix}`;
  }
  return `${nano}n`;
}
