import pino from "pino";

/** The logger handed to everything that runs. Structured: the first argument carries fields, the second the sentence. */
export type Log = Pick<pino.Logger, "debug" | "info" | "warn" | "error">;

/** Logs to stderr as text lines in Istio's shape (time, level, scope, message), or as JSON where asked. */
export function createLog(options: { readonly scope: string; readonly level?: string; readonly json?: boolean }): Log {
  const level = options.level ?? "info";
  if (options.json === true)
    return pino({ level, base: { scope: options.scope }, timestamp: pino.stdTimeFunctions.isoTime }, pino.destination(2));
  const write = (label: string, weight: number) => {
    const enabled = weight >= (pino.levels.values[level] ?? 30);
    return (first: unknown, second?: unknown): void => {
      if (enabled) process.stderr.write(textLine(label, options.scope, first, second));
    };
  };
  return { debug: write("debug", 20), info: write("info", 30), warn: write("warn", 40), error: write("error", 50) } as Log;
}

export const silentLog: Log = { debug: () => {}, info: () => {}, warn: () => {}, error: () => {} };

function textLine(label: string, scope: string, first: unknown, second: unknown): string {
  const message = typeof first === "string" ? first : String(second ?? "");
  const fields = typeof first === "object" && first !== null ? Object.entries(first).map(([key, value]) => `${key}=${plain(value)}`) : [];
  return `${[new Date().toISOString(), label, scope, message, ...fields].join("\t")}\n`;
}

const plain = (value: unknown): string =>
  typeof value === "string" ? value : value instanceof Error ? value.message : JSON.stringify(value);
