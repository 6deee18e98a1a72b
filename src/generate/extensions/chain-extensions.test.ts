import { describe, expect, it } from "vitest";
import { WorkloadMode } from "../../gen/istio/type/v1beta1/selector_pb.js";
import { extensionsAt, rulesForSide } from "./chain-extensions.ts";
import type { ExtensionRule } from "./extension-rule.ts";

const rule = (name: string, rest: Partial<ExtensionRule> = {}): ExtensionRule => ({
  name,
  filter: "http",
  phase: "none",
  priority: undefined,
  matches: [],
  code: "wasm",
  ...rest,
});

const names = (rules: readonly ExtensionRule[]): readonly string[] => rules.map(({ name }) => name);

describe("extensions of a chain", () => {
  it("stand in their phases, higher priorities first, those without one last, older ones before younger", () => {
    const { http } = extensionsAt(
      [
        rule("old"),
        rule("stats", { phase: "stats" }),
        rule("none", { phase: "authz" }),
        rule("zero", { phase: "authz", priority: 0 }),
        rule("negative", { phase: "authz", priority: -5 }),
        rule("high", { phase: "authz", priority: 9 }),
        rule("authn", { phase: "authn" }),
        rule("young"),
      ],
      80,
    );
    expect(
      http && {
        authn: http.authn.map(({ name }) => name),
        authz: http.authz.map(({ name }) => name),
        rest: http.rest.map(({ name }) => name),
      },
    ).toEqual({
      authn: ["authn"],
      authz: ["high", "zero", "negative", "none"],
      rest: ["stats", "old", "young"],
    });
  });

  it("are those for the port, and for what the chain carries", () => {
    const here = rule("here", { matches: [{ mode: WorkloadMode.UNDEFINED, ports: [80] }] });
    const bytes = rule("bytes", { filter: "network" });
    expect(extensionsAt([here], 81)).toEqual({});
    expect(extensionsAt([here, bytes], 80).http?.rest.map(({ name }) => name)).toEqual(["here"]);
    expect(extensionsAt([here, bytes], 81)).toEqual({ network: { authn: [], authz: [], rest: [{ name: "bytes", code: "wasm" }] } });
  });

  it("are those for the side: gateways are clients", () => {
    const mode = (one: WorkloadMode): Partial<ExtensionRule> => ({ matches: [{ mode: one, ports: [] }] });
    const rules = [
      rule("any"),
      rule("client", mode(WorkloadMode.CLIENT)),
      rule("server", mode(WorkloadMode.SERVER)),
      rule("both", mode(WorkloadMode.CLIENT_AND_SERVER)),
      rule("unsaid", mode(WorkloadMode.UNDEFINED)),
    ];
    expect(names(rulesForSide(rules, "client"))).toEqual(["any", "client", "both", "unsaid"]);
    expect(names(rulesForSide(rules, "gateway"))).toEqual(["any", "client", "both", "unsaid"]);
    expect(names(rulesForSide(rules, "server"))).toEqual(["any", "server", "both", "unsaid"]);
  });
});
