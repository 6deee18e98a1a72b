import type { SchemaRule, SchemaRules } from "../parse/schema-rules.ts";

/** Bounds on the labels of a selector. */
export const SELECTOR_RULES: SchemaRule = { maxProperties: 4096 };

/** Bounds on what a policy refers to, for the kinds that take a selector or references. */
export const TARGET_RULES: SchemaRules = {
  "selector.matchLabels": SELECTOR_RULES,
  targetRefs: { maxItems: 16 },
  ...refRules("targetRef"),
  ...refRules("targetRefs[]"),
};

function refRules(at: string): SchemaRules {
  return {
    [at]: { required: ["kind", "name"] },
    [`${at}.group`]: { maxLength: 253, pattern: /^$|^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$/ },
    [`${at}.kind`]: { minLength: 1, maxLength: 63, pattern: /^[a-zA-Z]([-a-zA-Z0-9]*[a-zA-Z0-9])?$/ },
    [`${at}.name`]: { minLength: 1, maxLength: 253 },
  };
}
