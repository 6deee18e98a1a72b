import { parseCidr } from "../base/address.ts";
import { parseBool } from "../base/go-bool.ts";
import { parseHostPort } from "./host-port.ts";
import type { SettingDef } from "./setting-def.ts";

/** A value as its type says, or why it is not one. */
export type ReadValue = { readonly value: string | number | boolean } | { readonly fault: string };

/** Reads the text of one setting. Spellings follow Go, as Istio's do: `t`, `TRUE` and `1` are true, durations look like `1h30m` or `100ms`. */
export function readValue(def: Pick<SettingDef, "type" | "choices">, text: string): ReadValue {
  switch (def.type) {
    case "string":
      return { value: text };
    case "bool":
      return readBool(text);
    case "int":
      return /^[+-]?\d{1,15}$/.test(text) ? notNegative(Number(text), text) : { fault: `"${text}" is not a whole number` };
    case "port":
      return /^\d{1,5}$/.test(text) && Number(text) <= 65_535
        ? { value: Number(text) }
        : { fault: `"${text}" is no port: that is a number from 0 to 65535` };
    case "float":
      return /^[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d{1,2})?$/.test(text)
        ? notNegative(Number(text), text)
        : { fault: `"${text}" is not a number` };
    case "duration":
      return readDuration(text);
    case "address":
      return readAddress(text);
    case "range":
      return parseCidr(text) === undefined ? { fault: `"${text}" is not a range of addresses such as 10.0.0.0/8` } : { value: text };
    case "choice":
      return def.choices?.includes(text) === true ? { value: text } : { fault: `"${text}" is none of ${def.choices?.join(", ")}` };
  }
}

function readBool(text: string): ReadValue {
  const value = parseBool(text);
  return value === undefined ? { fault: `"${text}" is neither true nor false` } : { value };
}

function notNegative(value: number, text: string): ReadValue {
  return value >= 0 ? { value } : { fault: `"${text}" is negative` };
}

function readAddress(text: string): ReadValue {
  if (text === "") return { value: "" };
  const parsed = parseHostPort(text);
  return typeof parsed === "string" ? { fault: parsed } : { value: text };
}

const UNIT_MS = { ns: 1e-6, us: 1e-3, µs: 1e-3, μs: 1e-3, ms: 1, s: 1000, m: 60_000, h: 3_600_000 } as const;

function readDuration(text: string): ReadValue {
  if (text === "0") return { value: 0 };
  const parts = [...text.matchAll(/(\d+\.?\d*|\.\d+)(ns|us|\u00b5s|\u03bcs|ms|s|m|h)/gy)];
  const length = parts.reduce((sum, part) => sum + part[0].length, 0);
  if (parts.length === 0 || length !== text.length) return { fault: `"${text}" is not a duration such as 100ms, 5s or 1h30m` };
  return { value: parts.reduce((sum, [, amount, unit]) => sum + Number(amount) * (UNIT_MS[unit as keyof typeof UNIT_MS] ?? 0), 0) };
}
