import { describe, expect, it } from "vitest";
import { mergePod } from "./strategic-merge.ts";

describe("mergePod", () => {
  it("joins lists by their keys and replaces the others", () => {
    const pod = {
      spec: {
        containers: [{ name: "a", args: ["1", "2"], env: [{ name: "X", value: "1" }], ports: [{ containerPort: 80, name: "http" }] }],
        volumes: [{ name: "v", emptyDir: {} }],
        tolerations: [{ key: "a" }],
      },
    };
    const patch = {
      spec: {
        containers: [
          { name: "b", image: "i" },
          { name: "a", args: ["3"], env: [{ name: "Y", value: "2" }], ports: [{ containerPort: 80, protocol: "TCP" }] },
        ],
        tolerations: [{ key: "b" }],
      },
    };
    expect(mergePod(pod, patch)).toEqual({
      spec: {
        containers: [
          {
            name: "a",
            args: ["3"],
            env: [
              { name: "X", value: "1" },
              { name: "Y", value: "2" },
            ],
            ports: [{ containerPort: 80, name: "http", protocol: "TCP" }],
          },
          { name: "b", image: "i" },
        ],
        volumes: [{ name: "v", emptyDir: {} }],
        tolerations: [{ key: "b" }],
      },
    });
  });

  it("lets a volume have one source and a variable one value", () => {
    const pod = { spec: { volumes: [{ name: "v", emptyDir: {} }], containers: [{ name: "a", env: [{ name: "X", value: "1" }] }] } };
    const valueFrom = { fieldRef: { fieldPath: "metadata.name" } };
    const patch = {
      spec: { volumes: [{ name: "v", csi: { driver: "d" } }], containers: [{ name: "a", env: [{ name: "X", valueFrom }] }] },
    };
    expect(mergePod(pod, patch)).toEqual(patch);
  });

  it("joins what two say about the same source", () => {
    const fieldRef = { apiVersion: "v1", fieldPath: "metadata.name" };
    const volumes = [{ name: "v", emptyDir: { medium: "Memory" } }];
    const pod = { spec: { volumes, containers: [{ name: "a", env: [{ name: "X", valueFrom: { fieldRef } }] }] } };
    const own = { fieldRef: { fieldPath: "spec.nodeName" } };
    const patch = { spec: { volumes: [{ name: "v", emptyDir: {} }], containers: [{ name: "a", env: [{ name: "X", valueFrom: own }] }] } };
    expect(mergePod(pod, patch)).toEqual({
      spec: {
        volumes,
        containers: [{ name: "a", env: [{ name: "X", valueFrom: { fieldRef: { ...fieldRef, fieldPath: "spec.nodeName" } } }] }],
      },
    });
    const other = { spec: { containers: [{ name: "a", env: [{ name: "X", valueFrom: { secretKeyRef: { name: "s", key: "k" } } }] }] } };
    expect(mergePod(pod, other).spec.containers).toEqual(other.spec.containers);
  });

  it("finds an item again whose key is null", () => {
    const patch = { spec: { containers: [{ name: "a", volumeMounts: [{ name: "v", mountPath: null }] }] } };
    const once = mergePod({ spec: {} }, patch);
    expect(once).toEqual({ spec: { containers: [{ name: "a", volumeMounts: [{ name: "v" }] }] } });
    expect(mergePod(once, patch)).toEqual(once);
  });

  it("removes what is null, and obeys $patch", () => {
    const pod = {
      metadata: { labels: { a: "1", b: "2" } },
      spec: { containers: [{ name: "a" }, { name: "b", securityContext: { x: 1, y: 2 } }] },
    };
    const patch = {
      metadata: { labels: { a: null } },
      spec: {
        containers: [
          { name: "a", $patch: "delete" },
          { name: "b", securityContext: { $patch: "replace", z: 3 } },
        ],
      },
    };
    expect(mergePod(pod, patch)).toEqual({
      metadata: { labels: { b: "2" } },
      spec: { containers: [{ name: "b", securityContext: { z: 3 } }] },
    });
    expect(pod.spec.containers).toHaveLength(2);
  });
});
