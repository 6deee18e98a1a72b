import { afterAll, describe, expect, it } from "vitest";
import { levelOf } from "../../src/config/problem.ts";
import { readObject } from "../../src/config/read-object.ts";
import { type CaseFile, CORPUS, hasCorpus, readCases, type ValidationCase } from "./validation-cases.ts";
import { DISAGREEMENTS } from "./validation-disagreements.ts";
import { runFragment } from "./validation-fragments.ts";

const WANTED_SHARE = 0.95;

/** How one case ended. */
interface Verdict {
  readonly id: string;
  readonly outcome: "agrees" | "disagrees" | "not run";
  readonly said: string;
}

const scores: { readonly name: string; readonly verdicts: readonly Verdict[] }[] = [];

if (!hasCorpus()) {
  console.log(`skipped: no corpus at ${CORPUS}`);
  it.skip("validation corpus: ../shared is not there", () => {});
} else {
  describe("validation corpus", () => {
    for (const file of readCases()) {
      it(file.name, () => {
        const verdicts = judgeFile(file);
        scores.push({ name: file.name, verdicts });
        const unexplained = verdicts.filter((one) => one.outcome === "disagrees" && DISAGREEMENTS[one.id] === undefined);
        expect(unexplained.map((one) => `${one.id}: ${one.said}`)).toEqual([]);
      });
    }

    it(`agrees on at least ${WANTED_SHARE * 100} %`, () => {
      const all = scores.flatMap((score) => score.verdicts);
      expect(share(all)).toBeGreaterThanOrEqual(WANTED_SHARE);
    });

    it("lists no disagreement that is none any more", () => {
      const real = new Set(scores.flatMap((score) => score.verdicts.filter((one) => one.outcome === "disagrees").map((one) => one.id)));
      expect(Object.keys(DISAGREEMENTS).filter((id) => !real.has(id))).toEqual([]);
    });

    afterAll(() => console.log(summary()));
  });
}

const judgeFile = (file: CaseFile): readonly Verdict[] => file.cases.map((one) => judge(one, `${file.name}#${one.id}`));

function judge(one: ValidationCase, id: string): Verdict {
  const levels: string[] = [];
  const messages: string[] = [];
  if (one.doc === undefined) {
    const ran = runFragment(one, (code, _path, message) => {
      levels.push(levelOf(code));
      messages.push(message);
    });
    if (!ran) return { id, outcome: "not run", said: `no check named ${one.check}` };
  } else {
    for (const problem of readObject({ origin: { source: "corpus" }, slot: id, content: named(one) }).problems) {
      levels.push(problem.level);
      messages.push(`${problem.path.join(".")} ${problem.message}`);
    }
  }
  const valid = !levels.includes("error");
  const agrees = valid === one.valid && (one.warning !== true || levels.includes("warning"));
  const wanted = `${one.valid ? "valid" : "invalid"}${one.warning === true ? " with a warning" : ""}`;
  return {
    id,
    outcome: agrees ? "agrees" : "disagrees",
    said: `expected ${wanted}, found ${JSON.stringify(messages)}; theirs: ${one.errorText ?? one.errorContains ?? ""}`,
  };
}

/** Documents of the corpus may leave out their name, which is not what they are about. */
function named(one: ValidationCase): unknown {
  return { ...one.doc, metadata: { name: "case", ...(one.doc?.metadata as object | undefined) } };
}

const share = (verdicts: readonly Verdict[]): number => verdicts.filter((one) => one.outcome === "agrees").length / verdicts.length;

function summary(): string {
  const all = scores.flatMap((score) => score.verdicts);
  const lines = scores.map(({ name, verdicts }) => `${count(verdicts).padStart(9)}  ${name}`);
  const others = all
    .filter((one) => one.outcome !== "agrees")
    .map((one) => `  ${one.outcome}: ${one.id}: ${DISAGREEMENTS[one.id] ?? one.said}`);
  return ["validation: agreement per file", ...lines, `${count(all)} in all, ${(share(all) * 100).toFixed(1)} %`, ...others].join("\n");
}

const count = (verdicts: readonly Verdict[]): string => `${verdicts.filter((one) => one.outcome === "agrees").length}/${verdicts.length}`;
