import fc from "fast-check";

/** What YAML is made of, what it stumbles over, and names that every object of JavaScript has. */
const TOKENS = [
  ...["a: ", "- ", "? ", ": ", "{", "}", "[", "]", ",", "|\n", ">-\n", "'", '"', "#", "@", "`", "\n", "\n  ", "\n\t", "\r\n", "~"],
  ...[
    "&a ",
    "*a",
    "<<: *a",
    "&a [*a]",
    "!!binary ",
    "!!set {x}",
    "!<tag:x> ",
    "!!js/function ",
    "---\n",
    "...\n",
    "%YAML 9.9\n---\n",
    "%TAG ! x\n",
  ],
  ...[
    "__proto__: ",
    "constructor: ",
    "toString: ",
    "hasOwnProperty: ",
    "kind: List\nitems: ",
    "apiVersion: ",
    "metadata: ",
    "spec: ",
    "include: ",
  ],
  ...["1e999", "-0", "0x7fffffffffffffff", "9".repeat(400), "-.inf", ".nan", "1_0", "0o8", "2001-01-01", "yes", "12:30:45", "null"],
  ...["\u0085", "\u2028", "\ufeff", "\u0000", "\ud800", "ü", "😀"],
];

/** Arbitrary text, and text of YAML's own words in no order. */
const soup = fc.oneof(
  fc.string({ unit: "binary", maxLength: 200 }),
  fc
    .array(fc.oneof({ arbitrary: fc.constantFrom(...TOKENS), weight: 5 }, fc.string({ maxLength: 4 })), { maxLength: 40 })
    .map((words) => words.join("")),
);

/** Far deeper, wider and more aliased than anything is read. */
const excessive = fc.oneof(
  fc
    .tuple(fc.constantFrom("[", "{a: ", '{"a":', "- ", "a:\n "), fc.constantFrom(99, 100, 101, 5_000))
    .map(([open, times]) => open.repeat(times)),
  fc.constantFrom(20, 99, 200).map((times) => Array.from({ length: times }, (_, at) => `${" ".repeat(at)}a:`).join("\n")),
  fc
    .tuple(fc.constantFrom(2, 9), fc.constantFrom(3, 12))
    .map(([wide, deep]) =>
      ["a0: &a0 [x]", ...Array.from({ length: deep }, (_, at) => `a${at + 1}: &a${at + 1} [${Array(wide).fill(`*a${at}`)}]`)].join("\n"),
    ),
  fc.constantFrom(999, 1_001).map((times) => `a: &a 1\nb: [${Array(times).fill("*a")}]`),
  fc.constantFrom(1, 5_000).map((times) => `a: [\n${"x,\n".repeat(times)}]`),
  fc.constant(`a: ${"x".repeat(100_000)}`),
);

type Edit = (text: string) => string;

const at = (text: string, share: number): number => Math.floor(share * text.length);
const editLines =
  (edit: (lines: string[], at: number) => void, share: number): Edit =>
  (text) => {
    const lines = text.split("\n");
    edit(lines, Math.floor(share * lines.length));
    return lines.join("\n");
  };
const share = fc.double({ min: 0, max: 0.999, noNaN: true });
const edit: fc.Arbitrary<Edit> = fc.oneof(
  fc.tuple(share, fc.nat(7)).map(
    ([where, bit]): Edit =>
      (text) =>
        flipped(text, at(text, where), 1 << bit),
  ),
  share.map(
    (where): Edit =>
      (text) =>
        text.slice(0, at(text, where)),
  ),
  fc.tuple(share, fc.constantFrom(...TOKENS)).map(
    ([where, token]): Edit =>
      (text) =>
        `${text.slice(0, at(text, where))}${token}${text.slice(at(text, where))}`,
  ),
  share.map((where) => editLines((lines, line) => void lines.splice(line, 1), where)),
  share.map((where) => editLines((lines, line) => void lines.splice(line, 0, lines[line] ?? ""), where)),
  share.map((where) => editLines((lines, line) => void lines.splice(line, 1, ` ${lines[line] ?? ""}`), where)),
  fc
    .tuple(share, fc.constantFrom(...TOKENS))
    .map(([where, token]) =>
      editLines((lines, line) => void lines.splice(line, 1, (lines[line] ?? "").replace(/[^\s:-]+/, token.trim())), where),
    ),
  fc
    .tuple(share, fc.constantFrom(...TOKENS))
    .map(([where, token]) =>
      editLines((lines, line) => void lines.splice(line, 1, (lines[line] ?? "").replace(/: .*$/, `: ${token}`)), where),
    ),
);

const flipped = (text: string, index: number, bit: number): string =>
  `${text.slice(0, index)}${String.fromCharCode((text.charCodeAt(index) || 0) ^ bit)}${text.slice(index + 1)}`;

/** A text after one to four small accidents. */
export const mutated = (text: string): fc.Arbitrary<string> =>
  fc.array(edit, { minLength: 1, maxLength: 4 }).map((edits) => edits.reduce((current, one) => one(current), text));

/** Anything that may stand in a file: nonsense, excess, and good texts after accidents. */
export const hostileText = (goodTexts: readonly string[]): fc.Arbitrary<string> =>
  fc.oneof(soup, excessive, ...goodTexts.map((text) => ({ arbitrary: mutated(text), weight: 3 })));

/** Fails where objects of JavaScript got a property by what was read. */
export function assertNothingPolluted(): void {
  const found = Object.keys(Object.prototype);
  if (found.length > 0 || ({} as { x?: unknown }).x !== undefined) throw new Error(`all objects have ${found.join()}`);
}
