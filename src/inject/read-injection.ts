import { messageOf } from "../base/errors.ts";
import { readYaml } from "../config/mesh/read-yaml.ts";
import { DEFAULT_INJECTION, type InjectionConfig, readInjectionConfig } from "./injection-config.ts";
import { type Fields, isFields } from "./pod.ts";
import { type TemplateSet, templateSet } from "./template-set.ts";
import { type InjectionValues, readValues } from "./values.ts";

/** The two texts of Istio's injector ConfigMap, where they are given. */
export interface InjectionTexts {
  readonly config?: string;
  readonly values?: string;
}

export interface ReadInjection {
  readonly config: InjectionConfig;
  readonly templates: TemplateSet;
  readonly values: InjectionValues;
}

/**
 * Reads the configuration of injection. Without one, values may carry parts of it, as Helm's do under `sidecarInjectorWebhook`. All of it is in order,
 * or nothing is taken: half a configuration would inject pods that nobody meant.
 */
export function readInjection({ config, values }: InjectionTexts): ReadInjection | { readonly faults: readonly string[] } {
  const valueFields = fieldsOf("values", values);
  const configFields = fieldsOf("config", config);
  const faults = [valueFields, configFields].filter((read) => typeof read === "string");
  if (typeof valueFields === "string" || typeof configFields === "string") return { faults };
  const readV = readValues(valueFields ?? {});
  const webhook = valueFields?.sidecarInjectorWebhook;
  const readC = readInjectionConfig(configFields ?? (isFields(webhook) ? { ...DEFAULT_INJECTION, ...webhook } : {}));
  if ("faults" in readV) return { faults: readV.faults.map((fault) => `values: ${fault}`) };
  if ("faults" in readC) return { faults: readC.faults.map((fault) => `config: ${fault}`) };
  try {
    return { config: readC.config, templates: templateSet(readC.config), values: readV.values };
  } catch (error) {
    return { faults: [messageOf(error)] };
  }
}

function fieldsOf(name: string, text: string | undefined): Fields | string | undefined {
  if (text === undefined) return undefined;
  const read = readYaml(text);
  if (!read.ok) return `${name}: line ${read.line}: ${read.message}`;
  return isFields(read.value) ? read.value : `${name} must be an object`;
}

/** The texts in a ConfigMap, where a file holds one as `kubectl get` gives it; otherwise the file is the text itself. */
export function textOfConfigMap(text: string, key: "config" | "values" | "mesh"): string {
  const read = readYaml(text);
  const { kind, data } = read.ok && isFields(read.value) ? read.value : {};
  return kind === "ConfigMap" && isFields(data) && typeof data[key] === "string" ? data[key] : text;
}
