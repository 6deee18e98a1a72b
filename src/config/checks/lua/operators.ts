/** Operators before an operand. */
export const UNARY: ReadonlySet<string> = new Set(["not", "-", "#"]);
export const UNARY_BINDING = 8;
const BINDINGS: readonly (readonly [signs: string, left: number, right: number])[] = [
  ["or", 1, 1],
  ["and", 2, 2],
  ["< > <= >= ~= ==", 3, 3],
  ["..", 5, 4],
  ["+ -", 6, 6],
  ["* / %", 7, 7],
  ["^", 10, 9],
];

/** Operators between operands: how strongly each binds what stands before it and what comes behind it. */
export const BINARY = new Map(BINDINGS.flatMap(([signs, left, right]) => signs.split(" ").map((sign) => [sign, { left, right }] as const)));
