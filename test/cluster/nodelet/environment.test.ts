import { assert, describe, it } from "vitest";
import { environmentOf, expand, NotThereYet, type PodFacts } from "./environment.ts";
import type { ContainerSpec, Pod } from "./pod.ts";
import { podFiles } from "./pod-files.ts";
import { parseQuantity } from "./quantity.ts";
import { chooseNode } from "./scheduler.ts";

const pod = (spec: Partial<Pod["spec"]> = {}): Pod => ({
  apiVersion: "v1",
  kind: "Pod",
  metadata: { name: "web-0", namespace: "shop" },
  spec: { containers: [], ...spec },
});

const facts: PodFacts = {
  pod: pod(),
  podAddress: "10.1.0.1",
  nodeAddress: "10.1.255.2",
  capacity: { cpu: "8", memory: "16Gi" },
  data: async (_kind, name) => (name === "settings" ? { A: Buffer.from("from settings"), B: Buffer.from("b") } : undefined),
  trustBundle: async () => undefined,
};

const envOf = (container: Partial<ContainerSpec>): Promise<Readonly<Record<string, string>>> =>
  environmentOf({ name: "main", image: "echo", ...container }, facts, {});

describe("the environment of a container", () => {
  it("lets later entries win", async () => {
    const envFrom = [{ configMapRef: { name: "settings" } }];
    assert.deepEqual(await envOf({ envFrom, env: [{ name: "A", value: "own" }] }), { A: "own", B: "b" });
  });

  it("refers to earlier entries only", async () => {
    const env = await envOf({
      env: [
        { name: "X", value: "$(Y) $$(X)" },
        { name: "Y", value: "<$(X)>" },
      ],
    });
    assert.deepEqual(env, { X: "$(Y) $(X)", Y: "<$(Y) $(X)>" });
  });

  it("waits for what it needs, and does without what it need not have", async () => {
    const keyRef = { name: "absent", key: "k" };
    const needed = await envOf({ env: [{ name: "N", valueFrom: { secretKeyRef: keyRef } }] }).catch((error: unknown) => error);
    assert.instanceOf(needed, NotThereYet);
    assert.deepEqual(await envOf({ env: [{ name: "N", valueFrom: { secretKeyRef: { ...keyRef, optional: true } } }] }), {});
  });

  it("counts resources in units, rounded up, and takes the node's where none are set", async () => {
    const resource = (name: string, divisor: string) => ({ name: "R", valueFrom: { resourceFieldRef: { resource: name, divisor } } });
    const resources = { limits: { cpu: "1100m" } };
    assert.equal((await envOf({ resources, env: [resource("limits.cpu", "1")] })).R, "2");
    assert.equal((await envOf({ resources, env: [resource("limits.cpu", "1m")] })).R, "1100");
    assert.equal((await envOf({ env: [resource("limits.memory", "1Gi")] })).R, "16");
  });

  it("leaves unknown names in commands alone", () => assert.equal(expand("a $(B) $C", { A: "1" }), "a $(B) $C"));
});

describe("quantities", () => {
  const table: readonly [text: string, want: number][] = [
    ["100m", 0.1],
    ["2", 2],
    ["1Gi", 2 ** 30],
    ["1e3", 1000],
    ["5k", 5000],
  ];
  for (const [text, want] of table) it(text, () => assert.equal(parseQuantity(text), want));
});

describe("files of a pod", () => {
  it("point to the cluster's DNS unless the pod says otherwise", () => {
    const conf = (spec: Partial<Pod["spec"]>): string => podFiles(pod(spec), "10.1.0.1", "10.1.128.10")["/etc/resolv.conf"] ?? "";
    const first = "nameserver 10.1.128.10\nsearch shop.svc.cluster.local svc.cluster.local cluster.local";
    assert.equal(
      conf({ dnsConfig: { searches: ["x.y"], options: [{ name: "timeout", value: "1" }] } }),
      `${first} x.y\noptions ndots:5 timeout:1\n`,
    );
    assert.equal(conf({ dnsPolicy: "None", dnsConfig: { nameservers: ["192.0.2.1"] } }), "nameserver 192.0.2.1\n");
  });

  it("know a pod of a StatefulSet by its long name", () => {
    const hosts = podFiles(pod({ hostname: "web-0", subdomain: "web" }), "10.1.0.1", "")["/etc/hosts"];
    assert.include(hosts, "10.1.0.1\tweb-0.web.shop.svc.cluster.local\tweb-0\n");
  });
});

describe("the node of a pod", () => {
  const nodes = [
    { name: "a", labels: { zone: "1" } },
    { name: "b", labels: { zone: "2" } },
  ];
  it("is the one with the fewest pods", () => assert.equal(chooseNode(pod(), nodes, [pod({ nodeName: "a" })]), "b"));
  it("is one that its selector allows", () => {
    assert.equal(chooseNode(pod({ nodeSelector: { zone: "1" } }), nodes, [pod({ nodeName: "a" })]), "a");
    assert.isUndefined(chooseNode(pod({ nodeSelector: { zone: "3" } }), nodes, []));
  });
  it("is the one that a DaemonSet names", () => {
    const nodeSelectorTerms = [{ matchFields: [{ values: ["b"] }] }];
    const affinity = { nodeAffinity: { requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms } } };
    assert.equal(chooseNode(pod({ affinity }), nodes, []), "b");
  });
});
