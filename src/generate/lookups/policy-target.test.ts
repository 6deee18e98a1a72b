import { describe, expect, it } from "vitest";
import { isTargeted } from "./policy-target.ts";

const GROUP = "gateway.networking.k8s.io";
const workload = { namespace: "shop", labels: { [`${GROUP}/gateway-name`]: "edge", [`${GROUP}/gateway-class-name`]: "istio" } };

describe("isTargeted", () => {
  const table: readonly [policyNamespace: string, group: string, kind: string, name: string, want: boolean][] = [
    ["shop", GROUP, "Gateway", "edge", true],
    ["shop", GROUP, "Gateway", "other", false],
    ["istio-system", GROUP, "Gateway", "edge", false],
    ["shop", "", "Gateway", "edge", false],
    ["istio-system", GROUP, "GatewayClass", "istio", true],
    ["istio-system", GROUP, "GatewayClass", "edge", false],
    ["shop", GROUP, "GatewayClass", "istio", false],
    ["shop", "", "Service", "edge", false],
  ];
  for (const [policyNamespace, group, kind, name, want] of table) {
    it(`${group}/${kind} ${name} of ${policyNamespace} ${want ? "means" : "leaves"} a gateway of shop`, () => {
      expect(isTargeted([{ group, kind, name }], { policyNamespace, rootNamespace: "istio-system", workload })).toBe(want);
    });
  }

  it("means no workload that was made for no Gateway", () => {
    const plain = { namespace: "shop", labels: {} };
    const targets = [{ group: GROUP, kind: "Gateway", name: "edge" }];
    expect(isTargeted(targets, { policyNamespace: "shop", rootNamespace: "istio-system", workload: plain })).toBe(false);
  });
});
