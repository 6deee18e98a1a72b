import { AGENT_SETTINGS, type AgentSettings } from "./agent-table.ts";
import { INTERCEPT_FLAGS, INTERCEPT_VARIABLES, variablesOfFlag } from "./intercept-table.ts";
import { readValue } from "./read-value.ts";
import type { SettingDef, SettingsOf } from "./setting-def.ts";
import { SETTINGS, type Settings } from "./table.ts";

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
export interface SettingsRead<S = Settings> {
  readonly settings: S;
  readonly faults: readonly SettingFault[];
}

/**
 * Reads every setting of the table. The real environment wins over `env:` of mesh.yaml, so that an operator can overrule a file;
 * an empty variable counts as unset, except for addresses, where empty means off.
 */
export function readSettings(env: Env, meshEnv: Readonly<Record<string, string>> = {}): SettingsRead {
  return readTable(SETTINGS, env, meshEnv);
}

/** Reads the agent's settings. */
export const readAgentSettings = (env: Env): SettingsRead<AgentSettings> => readTable(AGENT_SETTINGS, env, {});

function readTable<T extends Record<string, SettingDef>>(
  table: T,
  env: Env,
  meshEnv: Readonly<Record<string, string>>,
): SettingsRead<SettingsOf<T>> {
  const faults: SettingFault[] = [];
  const entries = Object.entries<SettingDef>(table).map(([key, def]) => [key, readOne(def, { env, meshEnv, faults })]);
  return { settings: Object.freeze(Object.fromEntries(entries) as SettingsOf<T>), faults };
}

interface Sources {
  readonly env: Env;
  readonly meshEnv: Readonly<Record<string, string>>;
  readonly faults: SettingFault[];
}

function readOne(def: SettingDef, sources: Sources): string | number | boolean | undefined {
  const candidates = [
    { from: "environment", text: sources.env[def.env] || sources.env[def.alias ?? def.env] },
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
    .filter((name) => FAMILIES.test(name) && !FOREIGN.test(name) && !isSetting(name) && !OF_AGENT.has(name))
    .sort();
}

const OWN: ReadonlySet<string> = new Set(Object.values(SETTINGS).map(({ env }) => env));
const OF_AGENT: ReadonlySet<string> = new Set([
  ...Object.values<SettingDef>(AGENT_SETTINGS).flatMap(({ env, alias = env }) => [env, alias]),
  ...Object.entries(INTERCEPT_FLAGS).flatMap(([name, flag]) => variablesOfFlag(name, flag)),
  ...Object.keys(INTERCEPT_VARIABLES),
]);

/** Whether a variable of this name is honoured by the control plane. */
export const isSetting = (name: string): boolean => OWN.has(name);
