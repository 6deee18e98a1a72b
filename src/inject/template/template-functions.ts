import { CORE_FUNCTIONS } from "./core-functions.ts";
import { INJECTION_FUNCTIONS } from "./injection-functions.ts";
import { SPRIG_FUNCTIONS } from "./sprig-functions.ts";

/** A function of templates. Pure, and of bounded cost in the size of what it is given. */
export type TemplateFunction = (...values: readonly unknown[]) => unknown;

/** Every function a template may call, by name; `and` and `or` aside, which look at their second value only where it counts. */
export const TEMPLATE_FUNCTIONS: Readonly<Record<string, TemplateFunction>> = {
  ...CORE_FUNCTIONS,
  ...SPRIG_FUNCTIONS,
  ...INJECTION_FUNCTIONS,
};
