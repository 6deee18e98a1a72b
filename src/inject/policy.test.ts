import { describe, expect, it } from "vitest";
import { DEFAULT_INJECTION, type InjectionConfig } from "./injection-config.ts";
import { decideNative } from "./native-sidecars.ts";
import type { PodMetadata, PodSpec } from "./pod.ts";
import { decideInjection, revisionSelects } from "./policy.ts";

const selector = (labels: Record<string, string>) => [{ matchLabels: labels, matchExpressions: [] }];

describe("decideInjection", () => {
  interface Case {
    readonly what: string;
    readonly metadata?: PodMetadata;
    readonly spec?: PodSpec;
    readonly namespace?: string;
    readonly config?: Partial<InjectionConfig>;
    readonly want: boolean;
  }
  const table: readonly Case[] = [
    { what: "says nothing", want: true },
    { what: "says nothing, off by default", config: { policy: "disabled" }, want: false },
    {
      what: "wants it, off by default",
      metadata: { labels: { "sidecar.istio.io/inject": "true" } },
      config: { policy: "disabled" },
      want: true,
    },
    { what: "declines by annotation", metadata: { annotations: { "sidecar.istio.io/inject": "false" } }, want: false },
    {
      what: "has a label and another annotation",
      metadata: { labels: { "sidecar.istio.io/inject": "true" }, annotations: { "sidecar.istio.io/inject": "false" } },
      want: true,
    },
    { what: "says something else", metadata: { labels: { "sidecar.istio.io/inject": "maybe" } }, want: true },
    {
      what: "is on the host's network",
      spec: { hostNetwork: true },
      metadata: { labels: { "sidecar.istio.io/inject": "true" } },
      want: false,
    },
    { what: "is in kube-system", namespace: "kube-system", want: false },
    { what: "is never injected", metadata: { labels: { a: "b" } }, config: { neverInjectSelector: selector({ a: "b" }) }, want: false },
    {
      what: "is always injected",
      metadata: { labels: { a: "b" } },
      config: { policy: "disabled", alwaysInjectSelector: selector({ a: "b" }) },
      want: true,
    },
    {
      what: "is both",
      metadata: { labels: { a: "b" } },
      config: { alwaysInjectSelector: selector({ a: "b" }), neverInjectSelector: selector({ a: "b" }) },
      want: false,
    },
    { what: "meets an empty selector", config: { neverInjectSelector: selector({}) }, want: true },
  ];
  for (const { what, metadata = {}, spec = {}, namespace = "shop", config = {}, want } of table)
    it(`a pod that ${what} is ${want ? "injected" : "left alone"}`, () =>
      expect(decideInjection({ metadata, spec }, namespace, { ...DEFAULT_INJECTION, ...config }).inject).toBe(want));
});

describe("revisionSelects", () => {
  const table: readonly [namespace: Record<string, string>, pod: Record<string, string>, revisions: readonly string[], want: boolean][] = [
    [{}, {}, ["default"], false],
    [{ "istio-injection": "enabled" }, {}, ["default"], true],
    [{ "istio-injection": "enabled" }, {}, ["canary"], false],
    [{ "istio-injection": "disabled" }, { "sidecar.istio.io/inject": "true" }, ["default"], false],
    [{ "istio.io/rev": "canary" }, {}, ["canary"], true],
    [{ "istio.io/rev": "prod" }, {}, ["canary", "prod"], true],
    [{ "istio.io/rev": "canary" }, { "sidecar.istio.io/inject": "false" }, ["canary"], false],
    [{ "istio.io/rev": "canary", "istio-injection": "enabled" }, {}, ["canary"], false],
    [{}, { "istio.io/rev": "canary" }, ["canary"], true],
    [{}, { "sidecar.istio.io/inject": "true" }, ["default"], true],
    [{}, { "sidecar.istio.io/inject": "true" }, ["canary"], false],
  ];
  for (const [namespace, pod, revisions, want] of table)
    it(`${JSON.stringify(namespace)} ${JSON.stringify(pod)} is ${want ? "" : "not "}for ${revisions}`, () =>
      expect(revisionSelects(namespace, pod, revisions)).toBe(want));
});

describe("decideNative", () => {
  const nodes = (...kubelets: string[]) => kubelets.map((kubelet, index) => ({ name: `n${index}`, kubelet }));
  const table: readonly [
    mode: "auto" | "true" | "false",
    kubelets: readonly string[],
    bound: string | undefined,
    native: boolean,
    reason: string,
  ][] = [
    ["auto", [], undefined, true, "no node is known"],
    ["auto", ["v1.29.0", "v1.34.1-eks-1"], undefined, true, "all nodes run Kubernetes 1.29 or newer"],
    ["auto", ["v1.34.0", "v1.28.9"], undefined, false, "node n1 runs Kubernetes v1.28.9"],
    ["auto", ["v1.34.0", "v1.28.9"], "n0", true, "its node runs Kubernetes 1.29 or newer"],
    ["auto", ["v1.34.0", "v1.28.9"], "n1", false, "node n1 runs Kubernetes v1.28.9"],
    ["auto", [""], undefined, false, "node n0 runs Kubernetes of an unknown version"],
    ["true", ["v1.20.0"], undefined, true, "ENABLE_NATIVE_SIDECARS is true"],
    ["false", ["v1.34.0"], undefined, false, "ENABLE_NATIVE_SIDECARS is false"],
  ];
  for (const [mode, kubelets, bound, native, reason] of table)
    it(`${mode}, ${kubelets.join(" and ") || "no nodes"}, bound to ${bound}: ${native}, because ${reason}`, () =>
      expect(decideNative(mode, nodes(...kubelets), bound)).toEqual({ native, reason }));
});
