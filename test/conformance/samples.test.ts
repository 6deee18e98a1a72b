import { existsSync, readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { describe, expect, it } from "vitest";
import { readDocuments } from "../../src/config/documents/read-documents.ts";
import { readObject } from "../../src/config/read-object.ts";

/** Istio's own examples, beside the project: what somebody who tries a mesh applies first. */
const SAMPLES = resolve(import.meta.dirname, "../../../shared/conformance/samples");

interface Sample {
  readonly id: string;
  readonly inputs: readonly string[];
  /** What Istio's `istioctl validate` says of the file; absent where it reports errors, or not all of it is Kubernetes objects. */
  readonly validate?: "ok";
}

if (!existsSync(join(SAMPLES, "index.json"))) {
  console.log(`skipped: no samples at ${SAMPLES}`);
  it.skip("Istio's samples: ../shared is not there", () => {});
} else {
  const { cases } = JSON.parse(readFileSync(join(SAMPLES, "index.json"), "utf8")) as { readonly cases: readonly Sample[] };
  describe("Istio's samples", () => {
    it("are there", () => expect(cases.length).toBeGreaterThan(80));

    it.for(cases)("$id has no error that Istio does not report", ({ inputs, validate }) => {
      const errors = inputs.flatMap(errorsIn);
      if (validate === "ok") expect(errors).toEqual([]);
    });
  });
}

const errorsIn = (file: string): readonly string[] =>
  [...readDocuments(readFileSync(join(SAMPLES, file), "utf8"), { source: "samples", file, scope: file })]
    .flatMap((raw) => readObject(raw).problems)
    .filter(({ level }) => level === "error")
    .map(({ object, path, message }) => `${object.kind} ${object.name} ${path.join(".")}: ${message}`);
