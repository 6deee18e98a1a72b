import { readValue } from "./read-value.ts";
import { SETTINGS, type SettingDef, type SettingKey, type Settings } from "./table.ts";

/** Environment variables as the process has them; tests pass a literal. */
export type Env = Readonly<Record<string, string | undefined>>;

/** The directory everything is under: `$ISTIO_HOME`, else the working directory. Who runs the process does not matter. */
export const baseDirOf = (env: Env, workingDir: string): string => env[SETTINGS.home.env] || workingDir;

/** What is wrong with one variable, and where it was set. */
export interface SettingFault {
  readonly name: string;
  readonly from: "environment" | "mesh.yaml";
  readonly message: string;
}

/** `settings` is complete even where `faults` is not empty (a bad value counts as unset); the caller decides whether to go on. */
export interface SettingsRead {
  readonly settings: Settings;
  readonly faults: readonly SettingFault[];
}

/**
 * Reads every setting of the table. The real environment wins over `env:` of mesh.yaml, so that an operator can overrule a file;
 * an empty variable counts as unset, except for addresses, where empty means off.
 */
export function readSettings(env: Env, meshEnv: Readonly<Record<string, string>> = {}): SettingsRead {
  const faults: SettingFault[] = [];
  const entries = Object.entries<SettingDef>(SETTINGS).map(([key, def]) => [key, readOne(def, { env, meshEnv, faults })]);
  return { settings: Object.freeze(Object.fromEntries(entries) as Settings), faults };
}

interface Sources {
  readonly env: Env;
  readonly meshEnv: Readonly<Record<string, string>>;
  readonly faults: SettingFault[];
}

function readOne(def: SettingDef, sources: Sources): string | number | boolean | undefined {
  const candidates = [
    { from: "environment", text: sources.env[def.env] },
    { from: "mesh.yaml", text: Object.hasOwn(sources.meshEnv, def.env) ? sources.meshEnv[def.env] : undefined },
  ] as const;
  let found: string | number | boolean | undefined;
  for (const { from, text } of candidates) {
    if (text === undefined || (text === "" && def.type !== "address")) continue;
    const read = from === "mesh.yaml" && def.envOnly === true ? { fault: "can only be set in the environment" } : readValue(def, text);
    if ("fault" in read) sources.faults.push({ name: def.env, from, message: read.fault });
    else found ??= read.value;
  }
  return found ?? defaultOf(def);
}

function defaultOf(def: SettingDef): string | number | boolean | undefined {
  if (def.default === undefined) return undefined;
  const read = readValue(def, def.default);
  return "value" in read ? read.value : undefined;
}

const FAMILIES = /^(PILOT|ISTIO|ISTIOD|CITADEL|AMBIENT|UNSAFE)_/;
/** Node metadata belongs to the agent; Kubernetes adds variables for every Service of a namespace, ours among them. */
const FOREIGN = /^ISTIO_META(JSON)?_|_SERVICE_(HOST|PORT)(_|$)|_PORT(_\d+_(TCP|UDP|SCTP)(_|$)|$)/;

/** Variables that look like settings of a control plane but are none of ours: ignored, and worth one log line at start-up. */
export function unknownSettings(env: Env): readonly string[] {
  return Object.keys(env)
    .filter((name) => FAMILIES.test(name) && !FOREIGN.test(name) && !isSetting(name))
    .sort();
}

const KEY_OF_ENV: ReadonlyMap<string, SettingKey> = new Map(Object.entries(SETTINGS).map(([key, def]) => [def.env, key as SettingKey]));

/** Whether a variable of this name is honoured. */
export const isSetting = (name: string): boolean => KEY_OF_ENV.has(name);
