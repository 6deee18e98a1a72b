import { RE2JS } from "re2js";
import { quote } from "../base/quote.ts";

const names = (text: string): readonly string[] => text.split(" ");

/** Functions of Envoy's CEL by how many arguments they take, those of a receiver with a dot. It has no loops, and makes no texts of other values. */
const CALLS: ReadonlySet<string> = new Set([
  ...names("bool bytes double duration dyn has int size timestamp type uint").map((name) => `${name}/1`),
  ...names("contains endsWith matches startsWith").flatMap((name) => [`${name}/2`, `.${name}/1`]),
  ...names("getDate getDayOfMonth getDayOfWeek getDayOfYear getFullYear getHours getMilliseconds getMinutes getMonth getSeconds").flatMap(
    (name) => [`.${name}/0`, `.${name}/1`],
  ),
  ".size/0",
  ...["re.capture/2", "re.captureN/2", "re.extract/3"],
]);

/** What was found in an expression, as far as calls must know: how deep it is, and what it is at its top. */
export interface CelNode {
  readonly height: number;
  readonly kind: "name" | "field" | "text" | "other";
  /** A name, or the value of a text. */
  readonly text: string;
}

export interface CelCall {
  readonly name: string;
  readonly receiver: CelNode | undefined;
  readonly args: readonly CelNode[];
}

/** Why Envoy takes no expression with such a call: it looks functions up when it loads a configuration. */
export function callFault({ name, receiver, args }: CelCall): string | undefined {
  const inSpace = receiver?.kind === "name" && CALLS.has(`${receiver.text}.${name}/${args.length}`);
  if (!inSpace && !CALLS.has(`${receiver === undefined ? "" : "."}${name}/${args.length}`))
    return `Envoy has no function ${quote(name)} for that`;
  if (name === "has" && args[0]?.kind !== "field") return "has() must be asked about a field, such as request.path";
  const pattern = name === "matches" ? args.at(-1) : undefined;
  return pattern?.kind === "text" ? patternFault(pattern.text) : undefined;
}

/** As large as Envoy lets the program of such a pattern be. */
const LARGEST_PROGRAM = 98;

/** What takes several steps of a program by bytes and one of ours: a dot, a class that is turned round, letters beyond ASCII. */
const WIDE = /\\[DSWPp](?:\{\^?\w+\}|\w)?|\\.|\[\^(?:\\.|[^\]])+\]|\.|[^\0-\x7f]/gsu;
const SEVERAL = "(?:123456789)";

function patternFault(pattern: string): string | undefined {
  try {
    RE2JS.compile(pattern);
    const bytes = pattern.replace(WIDE, (atom) => (/^\\[^DSWPp]/.test(atom) ? atom : SEVERAL));
    return RE2JS.compile(bytes).programSize() > LARGEST_PROGRAM ? `${quote(pattern)} is too large for a pattern in CEL` : undefined;
  } catch {
    return `${quote(pattern)} is not a regular expression that RE2 accepts`;
  }
}
