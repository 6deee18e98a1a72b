import fc from "fast-check";
import { load } from "js-yaml";
import { describe, expect, it } from "vitest";
import { holds } from "../../test/support/holds.ts";
import { KINDS } from "./kinds/index.ts";
import type { KubernetesSecret } from "./kinds/secret/secret.ts";
import type { RawObject } from "./object.ts";
import { formatPath } from "./problem.ts";
import { readObject } from "./read-object.ts";

const raw = (content: unknown, more: Partial<RawObject> = {}): RawObject => ({
  origin: { source: "test" },
  slot: "test",
  content,
  ...more,
});
const entry = (spec: unknown, metadata: object = {}): Record<string, unknown> => ({
  apiVersion: "networking.istio.io/v1",
  kind: "WorkloadEntry",
  metadata: { name: "one", namespace: "shop", ...metadata },
  spec,
});
const codes = (result: ReturnType<typeof readObject>): readonly string[] =>
  result.problems.map((one) => `${one.code} ${formatPath(one.path)}`);

describe("readObject", () => {
  it("reads a good document into an object", () => {
    const document = entry({ address: "10.0.0.1" }, { labels: { app: "web" }, creationTimestamp: "2026-01-02T03:04:05Z", generation: 3 });
    const { object, ref, problems } = readObject(raw(document));
    expect(problems).toEqual([]);
    expect(ref).toEqual({ kind: "WorkloadEntry", namespace: "shop", name: "one" });
    expect(object).toMatchObject({
      kind: "WorkloadEntry",
      group: "networking.istio.io",
      version: "v1",
      namespace: "shop",
      name: "one",
      labels: { app: "web" },
      annotations: {},
      createdAt: Date.UTC(2026, 0, 2, 3, 4, 5),
      generation: 3,
      spec: { address: "10.0.0.1" },
    });
  });

  it("puts objects without namespace where the source says, else in default", () => {
    const document = entry({ address: "1.1.1.1" }, { namespace: undefined });
    expect(readObject(raw(document, { defaultNamespace: "dir" })).ref?.namespace).toBe("dir");
    expect(readObject(raw(document)).ref?.namespace).toBe("default");
    expect(readObject(raw({ apiVersion: "v1", kind: "Namespace", metadata: { name: "x", namespace: "y" } })).ref?.namespace).toBe("");
  });

  it("tells the two Gateways apart", () => {
    const spec = { servers: [{ port: { number: 80, name: "http", protocol: "HTTP" }, hosts: ["*"] }] };
    expect(readObject(raw({ apiVersion: "networking.istio.io/v1", kind: "Gateway", metadata: { name: "g" }, spec })).object?.kind).toBe(
      "Gateway",
    );
    expect(
      readObject(raw({ apiVersion: "gateway.networking.k8s.io/v1", kind: "Gateway", metadata: { name: "g" }, spec: {} })).object?.kind,
    ).toBe("KubernetesGateway");
  });

  const refused: readonly [what: string, content: unknown, want: readonly string[]][] = [
    ["nothing", undefined, ["document.not-an-object "]],
    ["a list", [], ["document.not-an-object "]],
    ["no type", { metadata: { name: "x" } }, ["document.not-an-object apiVersion", "document.not-an-object kind"]],
    ["a type that is no text", { apiVersion: 1, kind: {} }, ["document.not-an-object apiVersion", "document.not-an-object kind"]],
    ["no metadata", { apiVersion: "v1", kind: "Service" }, ["document.not-an-object metadata"]],
    ["no name", { apiVersion: "v1", kind: "Service", metadata: {} }, ["metadata.name metadata.name"]],
    ["a name in capitals", entry({ address: "1.1.1.1" }, { name: "One" }), ["metadata.name metadata.name"]],
    ["a name of 1 MB", entry({ address: "1.1.1.1" }, { name: "a".repeat(1_000_000) }), ["metadata.name metadata.name"]],
    ["a namespace with dots", entry({ address: "1.1.1.1" }, { namespace: "a.b" }), ["metadata.name metadata.namespace"]],
    ["labels that are numbers", entry({ address: "1.1.1.1" }, { labels: { a: 1 } }), ["schema.wrong-type metadata.labels.a"]],
    ["no time", entry({ address: "1.1.1.1" }, { creationTimestamp: "yesterday" }), ["schema.wrong-type metadata.creationTimestamp"]],
    ["an unknown kind", { apiVersion: "example.com/v1", kind: "Thing" }, ["kind.unknown kind"]],
    ["a kind that Istio does not have", { apiVersion: "networking.istio.io/v1", kind: "Gatway" }, ["kind.absent kind"]],
    ["an unknown version", { ...entry({}), apiVersion: "networking.istio.io/v9" }, ["kind.version apiVersion"]],
    ["an unknown field at the top", { ...entry({ address: "1.1.1.1" }), specc: {} }, ["schema.unknown-field specc"]],
    ["an unknown field below", entry({ adress: "1.1.1.1" }), ["schema.unknown-field spec.adress"]],
    ["what validation finds", entry({}), ["field.required spec.address"]],
  ];
  for (const [what, content, want] of refused) {
    it(`refuses ${what}`, () => {
      const result = readObject(raw(content));
      expect(codes(result)).toEqual(want);
      expect(result.object).toBeUndefined();
    });
  }

  it("takes an object of an API server whose schema is newer than ours, without the field", () => {
    const served = { origin: { source: "test", isServed: true } } as const;
    const result = readObject(raw(entry({ address: "1.1.1.1", adress: "x" }), served));
    expect(codes(result)).toEqual(["schema.newer-field spec.adress"]);
    expect(result.object?.spec).toMatchObject({ address: "1.1.1.1" });
    expect(codes(readObject(raw({ ...entry({ address: "1.1.1.1" }), specc: {} }, served)))).toEqual(["schema.unknown-field specc"]);
  });

  it("names the kind that was probably meant", () => {
    const said = (kind: string) => readObject(raw({ ...entry({}), kind })).problems.map(({ message }) => message);
    expect(said("Gatway")).toEqual(['networking.istio.io has no kind "Gatway"; did you mean Gateway?']);
    expect(said("Deployment")).toEqual(['networking.istio.io has no kind "Deployment"']);
  });

  it("passes on why a text could not be read", () => {
    expect(readObject(raw(undefined, { fault: "too large" })).problems).toMatchObject([
      { code: "document.unreadable", message: "too large" },
    ]);
  });

  it("names the object of a broken document, so that its last good version can stay", () => {
    expect(readObject(raw(entry({ adress: "x" }))).ref).toEqual({ kind: "WorkloadEntry", namespace: "shop", name: "one" });
  });

  it("says where a fault is", () => {
    const text = [
      "apiVersion: networking.istio.io/v1",
      "kind: VirtualService",
      "metadata: {name: a}",
      "spec:",
      "  hosts: [a.com]",
      "  http:",
      "  - route:",
      "    - destination: {host: b}",
      "    tiemout: 1s",
      "",
    ].join("\n");
    const { problems } = readObject(raw(load(text), { origin: { source: "files", file: "a.yaml", line: 11 }, text }));
    expect(problems).toMatchObject([{ file: "a.yaml", line: 19, path: ["spec", "http", 0, "tiemout"] }]);
  });

  it("gives the line of what is nearest where a field is missing", () => {
    const text = ["apiVersion: networking.istio.io/v1", "kind: WorkloadEntry", "metadata: {name: a}", "spec:", "  weight: 1"].join("\n");
    expect(readObject(raw(load(text), { origin: { source: "files", file: "a.yaml", line: 1 }, text })).problems).toMatchObject([
      { line: 4 },
    ]);
  });

  it("stops listing after a hundred problems", () => {
    const fields = Object.fromEntries(Array.from({ length: 5000 }, (_, index) => [`x${index}`, 1]));
    expect(readObject(raw(entry(fields))).problems.length).toBe(100);
  });

  it("survives aliases that multiply and nest without end", () => {
    let bomb: unknown = ["lol"];
    for (let level = 0; level < 12; level++) bomb = Array.from({ length: 10 }, () => bomb);
    const loop: Record<string, unknown> = {};
    loop.a = loop;
    for (const value of [{ a: bomb }, loop]) {
      const content = {
        apiVersion: "networking.istio.io/v1alpha3",
        kind: "EnvoyFilter",
        metadata: { name: "x" },
        spec: { configPatches: [{ patch: { value } }] },
      };
      expect(codes(readObject(raw(content)))[0]).toMatch(/^document.unreadable/);
    }
  });
});

describe("hash of an object", () => {
  const hashOf = (content: unknown): string | undefined => readObject(raw(content)).object?.hash;
  const base = entry({ address: "1.1.1.1", labels: { a: "1", b: "2" } }, { labels: { x: "1", y: "2" } });

  it("does not depend on the order of keys, nor on what is not configuration", () => {
    const turned = {
      spec: { labels: { b: "2", a: "1" }, address: "1.1.1.1" },
      kind: "WorkloadEntry",
      apiVersion: "networking.istio.io/v1",
      metadata: { namespace: "shop", labels: { y: "2", x: "1" }, name: "one" },
    };
    expect(hashOf(turned)).toBe(hashOf(base));
    expect(hashOf({ ...base, status: { conditions: [] } })).toBe(hashOf(base));
    expect(hashOf({ ...base, metadata: { ...(base.metadata as object), resourceVersion: "7", managedFields: [{}], generation: 9 } })).toBe(
      hashOf(base),
    );
  });

  it("changes with content, labels, annotations, age and name", () => {
    const others = [
      entry({ address: "1.1.1.2", labels: { a: "1", b: "2" } }, { labels: { x: "1", y: "2" } }),
      { ...base, metadata: { ...(base.metadata as object), labels: { x: "1" } } },
      { ...base, metadata: { ...(base.metadata as object), annotations: { z: "1" } } },
      { ...base, metadata: { ...(base.metadata as object), creationTimestamp: "2026-01-01T00:00:00Z" } },
      { ...base, metadata: { ...(base.metadata as object), name: "two" } },
    ];
    expect(new Set([base, ...others].map(hashOf)).size).toBe(others.length + 1);
  });

  it("of a Pod looks only at what a mesh reads", () => {
    const pod = (status: object) => ({ apiVersion: "v1", kind: "Pod", metadata: { name: "p" }, spec: { containers: [] }, status });
    expect(hashOf(pod({ podIP: "1.1.1.1", conditions: [{ type: "Ready", status: "True", lastProbeTime: "a" }] }))).toBe(
      hashOf(pod({ podIP: "1.1.1.1", conditions: [{ type: "Ready", status: "True", lastProbeTime: "b" }], startTime: "c" })),
    );
    expect(hashOf(pod({ podIP: "1.1.1.1" }))).not.toBe(hashOf(pod({ podIP: "1.1.1.2" })));
  });
});

describe("Secrets", () => {
  const secret = (data: unknown) => ({ apiVersion: "v1", kind: "Secret", metadata: { name: "s" }, type: "kubernetes.io/tls", data });
  const read = (value: string) => readObject(raw(secret({ "tls.key": Buffer.from(value).toString("base64") }))).object;

  it("hold their values without showing them, and change with them", () => {
    const object = read("hunter2");
    expect(JSON.stringify(object)).not.toMatch(/hunter2|aHVudGVyMg/);
    const spec = object?.spec as KubernetesSecret | undefined;
    expect(String(spec?.data["tls.key"])).toBe("[redacted]");
    expect(spec?.names).toEqual(["tls.key"]);
    expect(read("hunter2")?.hash).toBe(object?.hash);
    expect(read("hunter3")?.hash).not.toBe(object?.hash);
  });

  it("are not quoted in problems", () => {
    for (const data of [{ key: 12345678 }, { key: "§hunter2§" }, "hunter2", ["hunter2"]]) {
      const { problems } = readObject(raw(secret(data)));
      expect(problems.length).toBeGreaterThan(0);
      expect(JSON.stringify(problems)).not.toMatch(/hunter2|12345678/);
    }
  });
});

describe("readObject never throws", () => {
  const kinds = fc.constantFrom(
    ...KINDS.map((def) => ({ apiVersion: def.group === "" ? "v1" : `${def.group}/${def.versions[0]}`, kind: def.writtenKind ?? def.kind })),
  );

  it("on any content", () => {
    holds(
      fc.property(
        fc.anything({ withBigInt: true, withDate: true, withMap: true, withNullPrototype: true }),
        (content) => void readObject(raw(content)),
      ),
      { numRuns: 500 },
    );
  });

  it("on any body of any kind", () => {
    holds(
      fc.property(kinds, fc.object({ maxDepth: 4, key: fieldNames }), fc.anything(), (type, spec, metadata) => {
        readObject(raw({ ...type, metadata: { name: "x" }, spec }));
        readObject(raw({ ...type, ...spec, metadata }));
      }),
      { numRuns: 2000 },
    );
  });
});

/** Names that occur in real objects, so that random ones get past the first field. */
const fieldNames = fc.constantFrom(
  ...[
    "hosts",
    "http",
    "tls",
    "tcp",
    "match",
    "route",
    "destination",
    "host",
    "port",
    "number",
    "uri",
    "prefix",
    "regex",
    "selector",
    "matchLabels",
    "labels",
    "ports",
    "name",
  ],
  ...[
    "endpoints",
    "address",
    "addresses",
    "servers",
    "mode",
    "rules",
    "from",
    "source",
    "principals",
    "when",
    "key",
    "values",
    "subsets",
    "trafficPolicy",
    "loadBalancer",
    "simple",
  ],
  ...[
    "configPatches",
    "patch",
    "value",
    "operation",
    "applyTo",
    "ingress",
    "egress",
    "data",
    "spec",
    "status",
    "containers",
    "jwtRules",
    "jwks",
    "retries",
    "timeout",
    "template",
    "probe",
  ],
);
