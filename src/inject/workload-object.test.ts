import { describe, expect, it } from "vitest";
import { workloadObject } from "./workload-object.ts";

const kinds: readonly (readonly [apiVersion: string, kind: string, makesPods: boolean])[] = [
  ["apps/v1", "Deployment", true],
  ["v1", "ReplicationController", true],
  ["apps.openshift.io/v1", "DeploymentConfig", true],
  ["v1", "DeploymentConfig", true],
  ["example.com/v1", "Deployment", false],
  ["v1", "Service", false],
];

describe("workloadObject", () => {
  for (const [apiVersion, kind, makesPods] of kinds) {
    it(`finds ${makesPods ? "the pod" : "no pod"} in ${apiVersion} ${kind}`, () => {
      const object = { apiVersion, kind, metadata: { name: "web" }, spec: { template: { spec: { containers: [] } } } };
      expect(workloadObject(object)?.pod.spec).toEqual(makesPods ? { containers: [] } : undefined);
    });
  }
});
