import { describe, expect, it } from "vitest";
import { systemClock } from "../../base/clock.ts";
import type { LabelSelector } from "../../base/labels.ts";
import { silentLog } from "../../base/log.ts";
import { createEngine } from "../../engine/index.ts";
import { readDocuments } from "../documents/read-documents.ts";
import { defineInputs } from "../inputs.ts";
import { readObject } from "../read-object.ts";
import { createStore } from "./store.ts";

const selector = (matchLabels: Record<string, string>, ...matchExpressions: LabelSelector["matchExpressions"]): LabelSelector => ({
  matchLabels,
  matchExpressions,
});

const entry = (namespace: string): string => `
apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: {name: api, namespace: ${namespace}}
spec: {hosts: [api.${namespace}.test], ports: [{number: 80, name: http, protocol: HTTP}], resolution: DNS}
---
apiVersion: v1
kind: Secret
metadata: {name: key, namespace: ${namespace}}
data: {}
`;
const namespace = (name: string, labels: string): string => `
apiVersion: v1
kind: Namespace
metadata: {name: ${name}, labels: ${labels}}
`;

function rig(selectors: readonly LabelSelector[]) {
  const engine = createEngine();
  const inputs = defineInputs(engine);
  const store = createStore({ engine, inputs, sources: ["files"], readObject, log: silentLog, clock: systemClock });
  store.selectNamespaces(selectors);
  const say = (file: string, text: string) =>
    store.apply("files", {
      type: "replace",
      scopes: [{ scope: file, objects: [...readDocuments(text, { source: "files", file, scope: file })] }],
    });
  const entries = (): readonly string[] => inputs.objects.keys("kind", "ServiceEntry").map((key) => key.split("/")[1] ?? "");
  return { engine, store, say, entries };
}

describe("namespaces that count", () => {
  it("are all where no selector is", async () => {
    const { say, entries } = rig([]);
    await say("a", `${entry("shop")}---${entry("bank")}`);
    expect(entries()).toEqual(["bank", "shop"]);
  });

  it("are those that a selector takes, and follow their labels", async () => {
    const { engine, store, say, entries } = rig([selector({ mesh: "member" }), selector({ "kubernetes.io/metadata.name": "named" })]);
    await say("a", [entry("shop"), entry("bank"), entry("named")].join("---"));
    await say("ns", [namespace("shop", "{mesh: member}"), namespace("bank", "{mesh: other}")].join("---"));
    expect(entries()).toEqual(["named", "shop"]);
    expect(store.get("ServiceEntry/bank/api")).toBeUndefined();
    expect(store.get("Secret/bank/key")).toBeUndefined();
    expect(store.get("Secret/shop/key")).toBeDefined();
    expect(store.list().map(({ object }) => object.namespace)).not.toContain("bank");

    const revision = engine.revision;
    const summary = await say("ns", [namespace("shop", "{mesh: other}"), namespace("bank", "{mesh: member}")].join("---"));
    expect(entries()).toEqual(["bank", "named"]);
    expect(engine.revision).toBe(revision + 1);
    expect(summary).toMatchObject({
      added: ["Secret/bank/key", "ServiceEntry/bank/api"],
      removed: ["Secret/shop/key", "ServiceEntry/shop/api"],
    });
  });

  it("follow the selectors", async () => {
    const { store, say, entries } = rig([]);
    await say("a", [entry("shop"), entry("bank"), namespace("shop", "{tier: front}")].join("---"));
    store.selectNamespaces([selector({}, { key: "tier", operator: "In", values: ["front", "back"] })]);
    expect(store.pending).toBe(true);
    expect(entries()).toEqual(["bank", "shop"]);
    store.commit();
    expect(entries()).toEqual(["shop"]);
    expect(store.pending).toBe(false);
    store.selectNamespaces([selector({}, { key: "tier", operator: "DoesNotExist", values: [] })]);
    store.commit();
    expect(entries()).toEqual(["bank"]);
    store.selectNamespaces([]);
    store.commit();
    expect(entries()).toEqual(["bank", "shop"]);
  });

  it("do not hide what is wrong with objects elsewhere", async () => {
    const { store, say } = rig([selector({ mesh: "member" })]);
    await say("a", entry("bank").replace("resolution: DNS", "resolution: STATIC, endpoints: [{address: a.example}]"));
    expect(store.problems().map(({ object }) => object.namespace)).toEqual(["bank"]);
  });
});
