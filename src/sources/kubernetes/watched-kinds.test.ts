import { describe, expect, it } from "vitest";
import { ListReader } from "../../kube/list-reader.ts";
import type { KubeObject } from "../../kube/resource-type.ts";
import { WATCHED_KINDS } from "./watched-kinds.ts";

/** Everything that is read of anything, among what nobody reads. */
const FULL = {
  metadata: {
    ...{ name: "a", namespace: "shop", uid: "u", resourceVersion: "1", generation: 3, generateName: "a-" },
    ...{ creationTimestamp: "2026-01-01T00:00:00Z", deletionTimestamp: "2026-01-02T00:00:00Z", finalizers: ["x"] },
    labels: { app: "a", managedFields: "b" },
    annotations: { "networking.istio.io/exportTo": ".", other: "x" },
    managedFields: [{ manager: "m", fieldsV1: { "f:metadata": {} } }],
    ownerReferences: [{ kind: "ReplicaSet", name: "r", uid: "v" }],
  },
  ...{ addressType: "IPv4", ports: [{ name: "http", port: 80, appProtocol: "h2c" }], type: "Opaque", data: { cert: "YQ==", more: "YQ==" } },
  endpoints: [
    { addresses: ["10.0.0.1"], conditions: { ready: true }, nodeName: "n", zone: "z", targetRef: { kind: "Pod", name: "a" }, hints: {} },
  ],
  spec: {
    ...{ nodeName: "n", hostNetwork: true, serviceAccountName: "s", hostname: "h", subdomain: "d", volumes: [{ name: "v" }] },
    containers: [
      { name: "c", image: "i", env: [{ name: "E" }], ports: [{ name: "http", containerPort: 80, protocol: "TCP", hostPort: 1 }] },
    ],
    ...{ clusterIP: "10.1.1.1", clusterIPs: ["10.1.1.1"], selector: { app: "a" }, externalName: "x", internalTrafficPolicy: "Local" },
  },
  status: {
    ...{ phase: "Running", podIP: "10.0.0.1", podIPs: [{ ip: "10.0.0.1" }], hostIP: "192.168.0.1" },
    conditions: [
      { type: "Initialized", status: "True" },
      { type: "Ready", status: "False", lastTransitionTime: "2026-01-01T00:00:00Z" },
    ],
    containerStatuses: [{ name: "c" }],
    addresses: [{ type: "InternalIP", address: "192.168.0.1" }],
    nodeInfo: { kubeletVersion: "v1.34.1", machineID: "m" },
    loadBalancer: { ingress: [{ ip: "203.0.113.1" }] },
  },
};

describe("kinds that are read from a cluster", () => {
  for (const { def, fields, shape } of WATCHED_KINDS) {
    it(`${def.kind}: a list gives what a watch gives`, () => {
      const whole: KubeObject = FULL;
      let listed: KubeObject | undefined;
      const reader = new ListReader((object) => {
        listed = object;
      }, fields?.json);
      reader.add(Buffer.from(JSON.stringify({ items: [whole] })));
      reader.end();
      const read = shape("v1");
      expect(listed && JSON.stringify(read(listed))).toBe(JSON.stringify(read(whole)));
      expect(listed?.metadata.resourceVersion).toBe("1");
    });
  }
});
