/** One measured line. `value` is what the line is about; a `limit` is what it must stay under; the rest tells how it came about. */
export interface Measurement {
  readonly bench: string;
  readonly value: number;
  readonly unit: "ms" | "MB" | "MB/h" | "handles/h" | "results/h" | "messages" | "streams" | "exponent" | "CSR/s" | "CPU s" | "×";
  readonly limit?: number;
  /** What it must reach. */
  readonly least?: number;
  readonly details: Readonly<Record<string, number | string>>;
}

/** Where measurements go: printed at once, kept for the table. */
export type Emit = (measurement: Measurement) => void;

/** The JSON line of a measurement: flat, so that it can be filtered and plotted as it is. */
export function jsonLine({ bench, value, unit, limit, least, details }: Measurement): string {
  return JSON.stringify({
    bench,
    value: round(value),
    unit,
    ...(limit !== undefined && { limit, ok: value <= limit }),
    ...(least !== undefined && { least, ok: value >= least }),
    ...rounded(details),
  });
}

/** The value below which a share of the numbers lies; 0 of none. */
export function quantile(numbers: readonly number[], share: number): number {
  const sorted = numbers.toSorted((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? 0;
}

export const median = (numbers: readonly number[]): number => quantile(numbers, 0.5);

/** Three digits are more than a machine repeats. */
export const round = (value: number): number => (Math.abs(value) >= 100 ? Math.round(value) : Number(value.toPrecision(3)));

const rounded = (details: Measurement["details"]): Measurement["details"] =>
  Object.fromEntries(Object.entries(details).map(([name, value]) => [name, typeof value === "number" ? round(value) : value]));

/** Says what was measured as soon as it is known, beside the rows that are made of it: a run that fails late loses nothing. */
export const tellRaw = (line: object): void => void process.stderr.write(`${JSON.stringify(line)}\n`);
