/** How one variable is read. `default` is written as a user would write it. */
export interface SettingDef {
  readonly env: string;
  /** Another name it goes by; the first counts. */
  readonly alias?: string;
  readonly type: SettingType;
  /** `undefined`: absence means something of its own. */
  readonly default: string | undefined;
  readonly choices?: readonly string[];
  /** A change in `mesh.yaml: env` takes effect only at the next start. */
  readonly restart?: true;
  /** Has no effect under `env:` of mesh.yaml, because it is needed before that is read or where that is not. */
  readonly envOnly?: true;
  /** Today's Istio has no such variable. */
  readonly own?: true;
  /** It may carry a user and a password, which are not shown. */
  readonly login?: true;
  readonly about: string;
}

/** How the text of a setting is read. */
export type SettingType = "string" | "bool" | "int" | "port" | "float" | "duration" | "address" | "range" | "choice";

/** Value of each type: durations are milliseconds; addresses stay text, read by `parseHostPort`. */
interface SettingValue {
  readonly string: string;
  readonly bool: boolean;
  readonly int: number;
  readonly port: number;
  readonly float: number;
  readonly duration: number;
  readonly address: string;
  readonly range: string;
  readonly choice: string;
}

/** The values of a table of settings. */
export type SettingsOf<T extends Record<string, SettingDef>> = {
  readonly [K in keyof T]: T[K] extends { choices: readonly (infer C)[] }
    ? C
    : SettingValue[T[K]["type"]] | (T[K]["default"] extends undefined ? undefined : never);
};
