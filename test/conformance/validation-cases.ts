import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";

/** One case of the corpus, whatever its part. */
export interface ValidationCase {
  readonly id: string;
  readonly valid: boolean;
  readonly warning?: boolean;
  /** A whole document (crd/ and tables/resource/). */
  readonly doc?: Readonly<Record<string, unknown>>;
  /** Kind of a document that does not say it. */
  readonly kind?: string;
  /** A fragment (tables/fragment/). */
  readonly check?: string;
  readonly types?: Readonly<Record<string, string>>;
  readonly args?: Readonly<Record<string, unknown>>;
  readonly errorText?: string;
  readonly errorContains?: string;
}

/** One file of the corpus. */
export interface CaseFile {
  readonly name: string;
  readonly cases: readonly ValidationCase[];
}

/** Where the corpus stands beside the project. */
export const CORPUS = join(import.meta.dirname, "../../../shared/conformance/validation");

export const hasCorpus = (): boolean => existsSync(CORPUS);

/** All cases, by file. */
export function readCases(): readonly CaseFile[] {
  return ["crd", "tables/resource", "tables/fragment"].flatMap((folder) =>
    readdirSync(join(CORPUS, folder))
      .filter((file) => file.endsWith(".json"))
      .map((file) => ({
        name: `${folder}/${file}`,
        cases: JSON.parse(readFileSync(join(CORPUS, folder, file), "utf8"), expand) as readonly ValidationCase[],
      })),
  );
}

interface Repeat {
  readonly string: string;
  readonly count: number;
}

/** Long texts are written as `{"$repeat": {string, count}}`, or `$repeatBase64` for its base64. */
function expand(_key: string, value: unknown): unknown {
  if (typeof value !== "object" || value === null) return value;
  if ("$repeat" in value) return repeat(value.$repeat as Repeat);
  if ("$repeatBase64" in value) return Buffer.from(repeat(value.$repeatBase64 as Repeat)).toString("base64");
  return value;
}

const repeat = ({ string, count }: Repeat): string => string.repeat(count);
