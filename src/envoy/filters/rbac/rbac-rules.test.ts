import { describe, expect, it } from "vitest";
import type { NamedRule, PermissionAttribute, RbacAction, RuleInput } from "./rbac-input.ts";
import { rbacRules } from "./rbac-rules.ts";

const operation = (kind: Exclude<PermissionAttribute["kind"], "metadata">, value: string) => ({
  attribute: { kind },
  values: [value],
  notValues: [],
});

const rule = (name: string, operations: RuleInput["operations"]): NamedRule => ({ name, rule: { sources: [[]], operations } });

const RULES: readonly NamedRule[] = [
  rule("tcp", [[operation("port", "80")]]),
  rule("both", [[operation("port", "81"), operation("method", "GET")]]),
  rule("either", [[operation("port", "82")], [operation("method", "GET")]]),
  rule("http", [[operation("path", "/x")]]),
];

/** Names of the rules, each with the number of demands of each operation. */
const kept = (action: RbacAction, layer: "http" | "network") =>
  Object.entries(rbacRules(RULES, action, layer).policies).map(([name, { permissions }]) => [
    name,
    permissions.map(({ rule: { case: kind, value } }) =>
      kind === "andRules" ? value.rules.filter((demand) => demand.rule.case !== "any").length : undefined,
    ),
  ]);

describe("rbacRules", () => {
  it("keeps everything for requests", () => {
    for (const action of ["ALLOW", "DENY"] as const) {
      expect(kept(action, "http")).toEqual([
        ["tcp", [1]],
        ["both", [2]],
        ["either", [1, 1]],
        ["http", [1]],
      ]);
    }
  });

  it("allows connections only by rules that can be judged on them", () => expect(kept("ALLOW", "network")).toEqual([["tcp", [1]]]));

  it("denies and notes connections by what is left of a rule", () => {
    for (const action of ["DENY", "LOG"] as const) {
      expect(kept(action, "network")).toEqual([
        ["tcp", [1]],
        ["both", [1]],
        ["either", [1, 0]],
        ["http", [0]],
      ]);
    }
  });

  it("matches nothing by a policy without rules", () => {
    const { never } = rbacRules([{ name: "never", rule: "never" }], "ALLOW", "http").policies;
    expect(never?.permissions[0]?.rule.case).toBe("notRule");
    expect(never?.principals[0]?.identifier.case).toBe("notId");
  });
});
