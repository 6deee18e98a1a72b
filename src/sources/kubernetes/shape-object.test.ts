import { describe, expect, it } from "vitest";
import type { Pod } from "../../config/kinds/pod/pod.ts";
import { readObject } from "../../config/read-object.ts";
import type { KubeObject } from "../../kube/resource-type.ts";
import { WATCHED_KINDS } from "./watched-kinds.ts";

const metadata = (more = {}): KubeObject["metadata"] => ({
  name: "web",
  namespace: "shop",
  uid: "u",
  resourceVersion: "7",
  managedFields: [{ manager: "kubectl" }],
  annotations: {
    "kubectl.kubernetes.io/last-applied-configuration": "{}",
    "networking.istio.io/exportTo": ".",
    big: "x".repeat(1_000_000),
  },
  ...more,
});
const shaped = (kind: string, object: KubeObject): string => {
  const def = WATCHED_KINDS.find((one) => one.def.kind === kind);
  return JSON.stringify(def?.shape(def.def.versions[0] ?? "")(object));
};

describe("what is kept of an object", () => {
  const pod = (ready: string, beat: string): KubeObject => ({
    metadata: metadata(),
    spec: {
      nodeName: "n1",
      volumes: [{ name: "v" }],
      initContainers: [
        { name: "setup", image: "s", ports: [{ name: "admin", containerPort: 81 }] },
        { name: "proxy", image: "p", restartPolicy: "Always", ports: [{ name: "metrics", containerPort: 90 }] },
      ],
      containers: [{ name: "app", image: "i", env: [{ name: "A" }], ports: [{ name: "web", containerPort: 80 }] }],
    },
    status: {
      phase: "Running",
      podIP: "10.0.0.1",
      conditions: [
        { type: "Ready", status: ready, lastProbeTime: beat },
        { type: "Initialized", status: "True" },
      ],
      containerStatuses: [{ restartCount: 1 }],
    },
  });

  it("does not change when a heartbeat does", () => {
    expect(shaped("Pod", pod("True", "1"))).toBe(shaped("Pod", pod("True", "2")));
    expect(shaped("Pod", pod("True", "1"))).not.toBe(shaped("Pod", pod("False", "1")));
  });

  it("leaves out what others wrote for themselves", () => {
    const text = shaped("Pod", pod("True", "1"));
    expect(text.length).toBeLessThan(600);
    expect(text).toContain("networking.istio.io/exportTo");
    for (const word of ["managedFields", "last-applied", "volumes", "image", "restartCount"]) expect(text).not.toContain(word);
  });

  it("is a document that can be read", () => {
    const content: unknown = JSON.parse(shaped("Pod", pod("True", "1")));
    const { object, problems } = readObject({ origin: { source: "test" }, slot: "", content });
    expect([object?.kind, object?.namespace, problems.length]).toEqual(["Pod", "shop", 0]);
    const ports = (object?.spec as Pod | undefined)?.spec.containers.flatMap((container) => container.ports.map(({ name }) => name));
    expect(ports).toEqual(["web", "metrics"]);
  });

  it("is of a Secret or ConfigMap what credentials are made of, or nothing", () => {
    expect(shaped("Secret", { metadata: metadata(), type: "Opaque", data: { password: "eA==" } })).toBe(undefined);
    expect(shaped("Secret", { metadata: metadata(), data: { "tls.crt": "eA==", password: "eA==" } })).not.toContain("password");
    expect(shaped("ConfigMap", { metadata: metadata(), data: { "app.conf": "x" } })).toBe(undefined);
    expect(shaped("ConfigMap", { metadata: metadata(), data: { "ca.crt": "x" } })).toContain("ca.crt");
  });

  it("is all of the spec of one of our kinds, with its generation and annotations", () => {
    const text = shaped("VirtualService", { metadata: metadata({ generation: 3 }), spec: { hosts: ["a"] }, status: { conditions: [] } });
    expect(text).toContain('"spec":{"hosts":["a"]}');
    expect(text).toContain('"generation":3');
    expect(text).toContain('"big"');
    expect(text).not.toContain("last-applied");
    expect(text).not.toContain("status");
  });
});
