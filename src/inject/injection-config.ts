import type { LabelSelector } from "../base/labels.ts";
import { type Fields, isFields } from "./pod.ts";

/** Whom to inject and with what: the `config` of Istio's injector ConfigMap. */
export interface InjectionConfig {
  /** Whether pods that say nothing are injected, once their namespace is. */
  readonly policy: "enabled" | "disabled";
  readonly defaultTemplates: readonly string[];
  /** Templates of users as text; one with the name of a built-in template takes its place. */
  readonly templates: Readonly<Record<string, string>>;
  /** A name for several templates. */
  readonly aliases: Readonly<Record<string, readonly string[]>>;
  readonly neverInjectSelector: readonly LabelSelector[];
  readonly alwaysInjectSelector: readonly LabelSelector[];
  readonly injectedAnnotations: Readonly<Record<string, string>>;
}

/** What holds where nobody configures injection: pods that ask for it get the built-in sidecar. */
export const DEFAULT_INJECTION: InjectionConfig = {
  policy: "enabled",
  defaultTemplates: ["sidecar"],
  templates: {},
  aliases: {},
  neverInjectSelector: [],
  alwaysInjectSelector: [],
  injectedAnnotations: {},
};

export type InjectionConfigRead = { readonly config: InjectionConfig } | { readonly faults: readonly string[] };

/** Reads a configuration of the injector, or the same fields as they stand under `sidecarInjectorWebhook` of Helm values. */
export function readInjectionConfig(written: unknown): InjectionConfigRead {
  if (!isFields(written)) return { faults: ["the configuration of the injector must be an object"] };
  const faults: string[] = [];
  const config: InjectionConfig = {
    policy: policyOf(written.policy, faults),
    defaultTemplates: texts(written.defaultTemplates, "defaultTemplates", faults) ?? DEFAULT_INJECTION.defaultTemplates,
    templates: textMap(written.templates, "templates", faults),
    aliases: Object.fromEntries(
      Object.entries(isFields(written.aliases) ? written.aliases : {}).map(([name, list]) => [
        name,
        texts(list, `aliases.${name}`, faults) ?? [],
      ]),
    ),
    neverInjectSelector: selectors(written.neverInjectSelector, "neverInjectSelector", faults),
    alwaysInjectSelector: selectors(written.alwaysInjectSelector, "alwaysInjectSelector", faults),
    injectedAnnotations: textMap(written.injectedAnnotations, "injectedAnnotations", faults),
  };
  return faults.length === 0 ? { config } : { faults };
}

function policyOf(value: unknown, faults: string[]): InjectionConfig["policy"] {
  if (value === undefined || value === null || value === "") return "enabled";
  if (value === "enabled" || value === "disabled") return value;
  faults.push("policy must be enabled or disabled");
  return "disabled";
}

function texts(value: unknown, path: string, faults: string[]): readonly string[] | undefined {
  if (value === undefined || value === null) return undefined;
  if (Array.isArray(value) && value.every((item) => typeof item === "string")) return value.length === 0 ? undefined : value;
  faults.push(`${path} must be a list of texts`);
  return undefined;
}

function textMap(value: unknown, path: string, faults: string[]): Readonly<Record<string, string>> {
  if (value === undefined || value === null) return {};
  if (isFields(value) && Object.values(value).every((item) => typeof item === "string")) return value as Record<string, string>;
  faults.push(`${path} must hold texts by name`);
  return {};
}

function selectors(value: unknown, path: string, faults: string[]): readonly LabelSelector[] {
  if (value === undefined || value === null) return [];
  if (!Array.isArray(value) || !value.every(isFields)) {
    faults.push(`${path} must be a list of label selectors`);
    return [];
  }
  return value.map((selector: Fields) => ({
    matchLabels: isFields(selector.matchLabels) ? (selector.matchLabels as Record<string, string>) : {},
    matchExpressions: (Array.isArray(selector.matchExpressions) ? selector.matchExpressions : []).filter(isFields).map((condition) => ({
      key: String(condition.key ?? ""),
      operator: String(condition.operator ?? ""),
      values: Array.isArray(condition.values) ? condition.values.map(String) : [],
    })),
  }));
}
