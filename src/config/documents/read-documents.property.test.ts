import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { assertNothingPolluted, hostileText, mutated } from "../../../test/properties/hostile-text.ts";
import { holds } from "../../../test/support/holds.ts";
import { objectKey } from "../object.ts";
import { readObject } from "../read-object.ts";
import { storeRig } from "../store/store-rig.ts";
import { DOCUMENT_LIMITS } from "./document-limits.ts";
import { type DocumentShape, readDocuments } from "./read-documents.ts";

const FROM = { source: "files", file: "conf/a.yaml", scope: "a.yaml" };

const entry = (name: string): string => `apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata:
  name: ${name}
  namespace: shop
  labels: {app: "${name}"}
spec:
  hosts:
  - ${name}.test
  location: MESH_INTERNAL
  resolution: STATIC
  ports:
  - {number: 80, name: http, protocol: HTTP}
  endpoints:
  - address: 10.0.0.1
    labels: {version: v1}
`;
const GOOD = ["one", "two", "three"].map(entry).join("---\n");
const ROUTES = `apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: {name: routes, namespace: shop}
spec:
  hosts: [one.test]
  http:
  - &rule
    match: [{uri: {regex: "/a.*"}, headers: {x-a: {exact: b}}}]
    timeout: 5s
    retries: {attempts: 3, perTryTimeout: 1s}
    route: [{destination: {host: two.test, port: {number: 80}}, weight: 50}, {destination: {host: three.test}, weight: 50}]
  - <<: *rule
    name: other
`;
const FILTER = JSON.stringify(
  {
    apiVersion: "v1",
    kind: "List",
    items: [
      {
        apiVersion: "networking.istio.io/v1alpha3",
        kind: "EnvoyFilter",
        metadata: { name: "f", namespace: "shop" },
        spec: { configPatches: [{ applyTo: "CLUSTER", patch: { operation: "MERGE", value: { connect_timeout: "1s" } } }] },
      },
      { apiVersion: "v1", kind: "Secret", metadata: { name: "s", namespace: "shop" }, data: { "tls.key": "aHVudGVyMg==" } },
    ],
  },
  null,
  1,
);

/** A value that was read is finite: as deep and as large as documents may be, whatever aliases stand for. */
function assertBounded(value: unknown): void {
  let nodes = 0;
  const walk = (one: unknown, depth: number): void => {
    nodes += 1;
    if (depth > DOCUMENT_LIMITS.maxDepth + 1 || nodes > DOCUMENT_LIMITS.maxNodes + 1) expect.fail(`${nodes} values, ${depth} levels`);
    if (typeof one !== "object" || one === null) return;
    expect([Object.prototype, Array.prototype, null]).toContain(Object.getPrototypeOf(one));
    for (const inner of Object.values(one)) walk(inner, depth + 1);
  };
  walk(value, 0);
}

describe("any text", () => {
  const text = hostileText([GOOD, ROUTES, FILTER]);

  it("is read into objects, or into faults that say where", () => {
    holds(
      fc.property(text, (content) => {
        const lines = content.split(/\r\n|\r|\n/).length;
        for (const raw of readDocuments(content, FROM)) {
          if (raw.fault === undefined) assertBounded(raw.content);
          else expect(raw.fault).toMatch(/^.{10,300}$/u);
          const { object, ref, problems } = readObject(raw);
          if (object === undefined) expect(problems.length).toBeGreaterThan(0);
          else expect(objectKey(object)).toBe(ref && objectKey(ref));
          for (const { file, line = 0, message, path } of problems) {
            expect({ file, isInText: line >= 1 && line <= lines }).toEqual({ file: FROM.file, isInText: true });
            expect(message).not.toMatch(/could not be judged|^$/);
            expect(message.length).toBeLessThan(5_000);
            for (const field of path) expect(["string", "number"]).toContain(typeof field);
          }
        }
        assertNothingPolluted();
      }),
      { numRuns: 1_000, examples: [[`*a${"9".repeat(400)}`], ["!\u2028piVersion: a"]] },
    );
  });

  it("brings the same again where its shape is known", () => {
    holds(
      fc.property(text, (content) => {
        const seen = { shapes: new Map<string, DocumentShape>(), documents: 0 };
        const facts = ({ content: value, digest, fault, origin }: ReturnType<typeof readObjects>[number]) => ({
          value,
          digest,
          fault,
          origin,
        });
        const before = readObjects(content, { seen }).map(facts);
        expect(readObjects(content, { known: seen.shapes }).map(facts)).toEqual(before);
      }),
      { numRuns: 300 },
    );
  });
});

const readObjects = (text: string, options: Parameters<typeof readDocuments>[2] = {}) => [...readDocuments(text, FROM, options)];

it("whatever happens to a file, its objects stay in their last good version until a document without faults says otherwise", async () => {
  await holds(
    fc.asyncProperty(fc.array(mutated(GOOD), { minLength: 1, maxLength: 3 }), async (versions) => {
      const { inForce, write } = startStore();
      await write(GOOD);
      for (const version of versions) {
        const before = inForce();
        await write(version);
        const read = readObjects(version).map(readObject);
        // A document of a kind that is not ours has no fault.
        const isWhole = read.every(({ ref, problems }) => ref !== undefined || problems.every(({ level }) => level === "warning"));
        for (const [key, hash] of before) {
          const named = read.find(({ ref }) => ref !== undefined && objectKey(ref) === key);
          if (named === undefined && isWhole) expect([key, inForce().get(key)]).toEqual([key, undefined]);
          else expect([key, inForce().get(key)]).toEqual([key, named?.object?.hash ?? hash]);
        }
      }
      await write(GOOD);
      expect([...inForce().keys()].filter((key) => key.startsWith("ServiceEntry/shop/")).sort()).toEqual(ALL);
    }),
    { numRuns: 300 },
  );
});

const ALL = ["one", "three", "two"].map((name) => `ServiceEntry/shop/${name}`);

interface RunningStore {
  inForce(): ReadonlyMap<string, string>;
  write(text: string): Promise<void>;
}

function startStore(): RunningStore {
  const { inputs, store } = storeRig({ sources: [FROM.source], readObject });
  return {
    inForce: () => new Map(inputs.objects.all().map((object) => [objectKey(object), object.hash])),
    async write(text) {
      await store.apply(FROM.source, { type: "replace", scopes: [{ scope: FROM.scope, objects: readObjects(text) }] });
    },
  };
}
