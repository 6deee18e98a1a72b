import fc from "fast-check";
import { expect, it } from "vitest";
import { holds } from "../../test/support/holds.ts";
import { defaultMeshConfig } from "../config/mesh/defaults.ts";
import { ANNOTATION } from "./annotations.ts";
import { injectPod } from "./inject-pod.ts";
import { jsonPatch } from "./json-patch.ts";
import { ownerOfPod } from "./owner.ts";
import { readInjection } from "./read-injection.ts";
import { PodShapeError, readPod } from "./read-pod.ts";

const read = readInjection({});
if ("faults" in read) throw new Error(read.faults.join());
const settings = { ...read, mesh: defaultMeshConfig(), revision: "default", compliancePolicy: "" };

const TEMPLATES = ["sidecar", "gateway", "grpc-agent", "grpc-simple"] as const;

/** Any JSON where a pod has something else: what a stranger may send to a webhook. */
const anything = fc.oneof(fc.jsonValue({ maxDepth: 3 }), fc.constantFrom(null, 0, "", [], {}, "istio-proxy", 15_020, { httpGet: 5 }));
const name = fc.constantFrom("web", "istio-proxy", "istio-init", "__proto__", "constructor");
const texts = fc.dictionary(
  fc.oneof(fc.constantFrom(...Object.values(ANNOTATION), "prometheus.io/port"), fc.string()),
  fc.oneof(fc.string(), fc.constantFrom("true", "{}", "8080", '{"containers":[{"name":"web"}]}', '{"initContainers":[5]}')),
  { maxKeys: 4 },
);
const container = fc.record(
  {
    name: fc.oneof(name, anything),
    env: fc.oneof(fc.array(fc.record({ name, value: anything }), { maxLength: 3 }), anything),
    ports: fc.oneof(fc.array(fc.record({ name: anything, containerPort: anything }), { maxLength: 2 }), anything),
    readinessProbe: anything,
    lifecycle: fc.oneof(fc.record({ preStop: anything, postStart: anything }), anything),
    securityContext: fc.oneof(fc.record({ runAsUser: anything }), anything),
    volumeMounts: fc.oneof(fc.array(fc.record({ name, mountPath: anything })), anything),
    args: fc.oneof(fc.array(fc.string()), anything),
  },
  { requiredKeys: ["name"] },
);
const containers = fc.oneof(fc.array(container, { maxLength: 3 }), anything);
const pod = fc.record(
  {
    metadata: fc.oneof(
      fc.record(
        { annotations: fc.oneof(texts, anything), labels: fc.oneof(texts, anything), ownerReferences: anything },
        { requiredKeys: [] },
      ),
      anything,
    ),
    spec: fc.oneof(
      fc.record(
        { containers, initContainers: containers, volumes: anything, imagePullSecrets: anything, securityContext: anything },
        { requiredKeys: [] },
      ),
      anything,
    ),
  },
  { requiredKeys: [] },
);

const podOf = (fields: object) => ({ spec: { containers: [{ name: "istio-proxy", ...fields }] } });
const KNOWN: [ReturnType<typeof podOf>, boolean, (typeof TEMPLATES)[number]][] = [
  [podOf({ name: "web" }), false, "grpc-agent"], // Empty resources of the annotation were put over the user's container.
  [podOf({ name: "web" }), true, "grpc-simple"],
  [podOf({ volumeMounts: [{ name: "web", mountPath: null }] }), false, "sidecar"], // Keys that are null, or no text: such items were not found again.
  [podOf({ volumeMounts: [{ name: "web", mountPath: {} }] }), false, "sidecar"],
  [podOf({ ports: [{ name: null, containerPort: [] }] }), false, "gateway"],
];

it("whatever a stranger sends as a pod is injected, or refused with sentences, and injecting the result again changes nothing", () => {
  let injected = 0;
  holds(
    fc.property(pod, fc.boolean(), fc.constantFrom(...TEMPLATES), (value, native, template) => {
      const inject = (one: unknown) => {
        const taken = readPod(one);
        const owner = ownerOfPod(taken, "shop");
        const config = { ...settings.config, defaultTemplates: [template] };
        return injectPod(
          { pod: taken, namespace: "shop", owner, native, proxyConfigs: [], variables: {}, user: { uid: 1, gid: 1 } },
          { ...settings, config },
        );
      };
      try {
        const once = inject(value);
        if ("faults" in once) {
          expect(once.faults.length).toBeGreaterThan(0);
          return;
        }
        injected += 1;
        JSON.stringify(jsonPatch(value, once.pod));
        const again = inject(JSON.parse(JSON.stringify(once.pod)));
        expect("pod" in again && JSON.parse(JSON.stringify(again.pod))).toEqual(JSON.parse(JSON.stringify(once.pod)));
      } catch (error) {
        if (!(error instanceof PodShapeError)) throw error;
      }
    }),
    { numRuns: 2_000, examples: KNOWN },
  );
  expect(injected).toBeGreaterThan(20);
});
