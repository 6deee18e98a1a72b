import { describe, expect, it } from "vitest";
import type { Caller } from "../authn/authenticator.ts";
import { actingCallers } from "./acting-callers.ts";

const pod = (
  name: string,
  at: { readonly node?: string; readonly account: string; readonly phase?: string; readonly cluster?: string },
) => ({
  ...{ kind: "Pod", group: "", version: "v1", namespace: "mesh", name, labels: {}, annotations: {}, createdAt: 0, generation: 0, hash: "" },
  ...(at.cluster !== undefined && { cluster: at.cluster }),
  spec: {
    uid: `uid-${name}`,
    spec: { ...(at.node !== undefined && { nodeName: at.node }), serviceAccountName: at.account, containers: [] },
    status: { phase: at.phase ?? "Running", podIPs: [], conditions: [] },
  },
});

const PODS = [
  pod("agent", { node: "one", account: "agent" }),
  pod("loose", { account: "agent" }),
  pod("web", { node: "one", account: "web" }),
  pod("job", { node: "one", account: "job", phase: "Succeeded" }),
  pod("far", { node: "two", account: "far" }),
  pod("waiting", { account: "waiting" }),
  pod("agent-west", { node: "one", account: "agent", cluster: "west" }),
  pod("cart-west", { node: "one", account: "cart", cluster: "west" }),
];
const fault = actingCallers({
  nodeAccounts: "mesh/agent, other/agent,",
  controlPlanes: "mesh/plane",
  clusterId: "east",
  objects: {
    get: (key) =>
      PODS.find(({ namespace, name, cluster }) => `Pod/${namespace}/${name}${cluster === undefined ? "" : `@${cluster}`}` === key),
    list: (_, key) => PODS.filter(({ namespace }) => key === `Pod/${namespace}`),
  },
});
const identity = (serviceAccount: string) => ({ trustDomain: "cluster.local", namespace: "mesh", serviceAccount });
const caller = (serviceAccount: string, more: Partial<Caller> = {}): Caller => ({
  identity: identity(serviceAccount),
  by: "token",
  ...more,
});
const bound = (name: string, cluster: string): Partial<Caller> => ({ pod: { name, uid: `uid-${name}` }, cluster });

describe("who may ask for certificates of others", () => {
  const table: readonly [who: string, Caller, holder: string, RegExp | undefined][] = [
    ["an agent for a workload of its node", caller("agent", bound("agent", "east")), "web", undefined],
    ["an agent for one of another node", caller("agent", bound("agent", "east")), "far", /caller's node/],
    ["an agent for one that has ended", caller("agent", bound("agent", "east")), "job", /caller's node/],
    ["an agent for one of a node of that name elsewhere", caller("agent", bound("agent", "east")), "cart", /caller's node/],
    ["an agent of another cluster for a workload there", caller("agent", bound("agent-west", "west")), "cart", undefined],
    ["an agent of another cluster for a workload here", caller("agent", bound("agent-west", "west")), "web", /caller's node/],
    ["an agent that is on no node, for one that is on none", caller("agent", bound("loose", "east")), "waiting", /caller's node/],
    ["an agent whose pod is another by now", caller("agent", { pod: { name: "agent", uid: "old" } }), "web", /another by now/],
    ["an agent with the pod of another account", caller("agent", bound("web", "east")), "web", /another by now/],
    ["an agent whose token names no pod", caller("agent"), "web", /no pod/],
    ["a control plane, wherever it is", caller("plane"), "far", undefined],
    ["anybody else", caller("web", bound("web", "east")), "web", /not among/],
  ];
  for (const [who, asks, holder, want] of table)
    it(`${who}: ${want === undefined ? "yes" : "no"}`, () => {
      const said = fault(asks, identity(holder));
      if (want === undefined) expect(said).toBeUndefined();
      else expect(said).toMatch(want);
    });
});
