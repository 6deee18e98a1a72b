import type { SettingDef } from "./setting-def.ts";
import { SETTINGS } from "./table.ts";

const LOGIN = /^((?:[a-z][a-z0-9+.-]*:)?\/\/)?[^/@]*@/i;

/** A setting as it is shown to people: without the user and password it may carry. */
export function shownSetting(key: string, value: unknown): unknown {
  const def = Object.hasOwn(SETTINGS, key) ? (SETTINGS as Readonly<Record<string, SettingDef>>)[key] : undefined;
  return def?.login === true && typeof value === "string" ? value.replace(LOGIN, "$1") : value;
}
