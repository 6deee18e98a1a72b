import { contentHash } from "../../src/base/hash.ts";
import type { ReadObject } from "../../src/config/store/judge.ts";
export const readObject: ReadObject = (raw) => {
  const p = (code: any, message: string) => ({ code, level: "error" as const, object: { kind: "", namespace: "", name: raw.slot }, path: [], message, file: raw.origin.file ?? "", line: raw.origin.line ?? 0 });
  if (raw.fault !== undefined) return { ref: undefined, problems: [p("document.unreadable", raw.fault)] };
  const c = raw.content as any;
  if (typeof c !== "object" || Array.isArray(c) || !c.kind || !c.metadata?.name) return { ref: undefined, problems: [p("document.not-an-object", "no")] };
  const ref = { kind: c.kind, namespace: c.metadata.namespace ?? raw.defaultNamespace ?? "default", name: c.metadata.name };
  if (ref.name.length > 253) return { ref, problems: [p("metadata.name", "too long")] };
  if (JSON.stringify(c.spec ?? {}).includes("not an address")) return { ref, problems: [p("field.invalid", "bad")] };
  return { ref, problems: [], object: { ...ref, group: "", version: "v1", labels: {}, annotations: {}, createdAt: 0, generation: 0, spec: c.spec, hash: contentHash(JSON.stringify([ref, c])) } };
};
