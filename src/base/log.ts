type Level = "debug" | "info" | "warn" | "error";

/** Takes a sentence, or fields and a sentence. */
type Write = (first: object | string, sentence?: string) => void;

/** The logger handed to everything that runs. Structured: the first argument carries fields, the second the sentence. */
export type Log = Readonly<Record<Level, Write>>;

/** Weights as other programs that read JSON logs know them. */
const WEIGHTS: Readonly<Record<Level, number>> = { debug: 20, info: 30, warn: 40, error: 50 };

/** Of one program or part of it. */
export interface LogOptions {
  readonly scope: string;
  readonly level?: string;
  readonly json?: boolean;
}

/** Logs to stderr as text lines in Istio's shape (time, level, scope, message), or as JSON where asked. */
export function createLog({ scope, level = "info", json = false }: LogOptions): Log {
  const least = WEIGHTS[level as Level] ?? WEIGHTS.info;
  const write = (label: Level): Write => {
    if (WEIGHTS[label] < least) return () => {};
    const line = json ? jsonLine : textLine;
    return (first, sentence) => {
      const [fields, message] = typeof first === "string" ? [{}, first] : [first, sentence ?? ""];
      process.stderr.write(line({ label, scope, fields, message }));
    };
  };
  return { debug: write("debug"), info: write("info"), warn: write("warn"), error: write("error") };
}

/** Says nothing. */
export const silentLog: Log = { debug: () => {}, info: () => {}, warn: () => {}, error: () => {} };

interface Entry {
  readonly label: Level;
  readonly scope: string;
  readonly fields: object;
  readonly message: string;
}

function textLine({ label, scope, fields, message }: Entry): string {
  const pairs = Object.entries(fields).flatMap(([key, value]) => (value === undefined ? [] : [`${key}=${plain(value)}`]));
  return `${[new Date().toISOString(), label, scope, ...[message, ...pairs].map(inOneLine)].join("\t")}\n`;
}

function jsonLine({ label, scope, fields, message }: Entry): string {
  const entry = { level: WEIGHTS[label], time: new Date().toISOString(), scope, ...fields, msg: message };
  return `${JSON.stringify(entry, sayable)}\n`;
}

const plain = (value: unknown): string =>
  typeof value === "string" ? value : value instanceof Error ? value.message : String(JSON.stringify(value, sayable));

/** What strangers send is logged too: a name with a line break in it must not pass for a line of ours. */
const inOneLine = (text: string): string =>
  text.replaceAll(/\p{Cc}/gu, (char) => (char === "\n" ? "\\n" : `\\u${char.charCodeAt(0).toString(16).padStart(4, "0")}`));

/** What JSON has no words for. */
const sayable = (_: string, value: unknown): unknown =>
  value instanceof Error ? value.message : typeof value === "bigint" ? String(value) : value;
