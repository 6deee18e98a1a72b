const FACTORS: Readonly<Record<string, number>> = {
  n: 1e-9,
  u: 1e-6,
  m: 1e-3,
  "": 1,
  k: 1e3,
  M: 1e6,
  G: 1e9,
  T: 1e12,
  Ki: 2 ** 10,
  Mi: 2 ** 20,
  Gi: 2 ** 30,
  Ti: 2 ** 40,
};

/** The number that a quantity such as `100m` or `1Gi` stands for. */
export function parseQuantity(text: string): number {
  const [, number = "0", suffix = ""] = /^([\d.]+(?:e\d+)?)([A-Za-z]*)$/.exec(text) ?? [];
  return Number(number) * (FACTORS[suffix] ?? 1);
}
