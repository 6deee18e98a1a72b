import { existsSync, readdirSync, readFileSync } from "node:fs";
import { cp, mkdir, mkdtemp, rm, symlink } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { systemClock } from "../../src/base/clock.ts";
import { silentLog } from "../../src/base/log.ts";
import { startControlPlane } from "../../src/serve/control-plane.ts";

/** Where the corpus lies, beside the project. */
export const CORPUS = resolve(import.meta.dirname, "../../../shared/conformance/xds");
export const hasCorpus = (): boolean => existsSync(join(CORPUS, "compare.mjs"));

export interface Score {
  total: number;
  matched: number;
  same: number;
  leaves: number;
}

export interface CaseResult {
  readonly id: string;
  readonly feature: string;
  readonly score: Score;
  readonly types: Readonly<Record<string, Score>>;
  /** Resources that are missing, too many or not the same, as `type/name`. */
  readonly differing: readonly string[];
  readonly print: (log: (line: string) => void) => void;
  readonly failure: string | undefined;
}

interface Comparison extends Score {
  readonly types: Record<string, Score>;
  readonly diffs: readonly { readonly type: string; readonly name: string }[];
}

interface Tools {
  readonly capture: (address: string, node: unknown, options: { delta: boolean }) => Promise<{ doc: unknown }>;
  readonly compare: (expected: unknown, actual: unknown) => Comparison;
  readonly printDiffs: (result: unknown, options: { log: (line: string) => void }) => void;
}

export const caseNames = (prefixes: readonly string[] = []): readonly string[] =>
  readdirSync(join(CORPUS, "cases"))
    .sort()
    .filter((name) => prefixes.length === 0 || prefixes.some((prefix) => name.startsWith(prefix)));

/** Serves one case with a real control plane over real gRPC and compares what every proxy gets with what Istio sends it. */
export async function runCase(name: string, options: { readonly delta: boolean }): Promise<readonly CaseResult[]> {
  const tools = await loadTools();
  const dir = join(CORPUS, "cases", name);
  const home = await mkdtemp(join(tmpdir(), "conformance-"));
  await mkdir(join(home, "etc/istio"), { recursive: true });
  await symlink(join(dir, "config"), join(home, "etc/istio/conf"));
  for (const file of ["mesh.yaml", "networks.yaml"])
    if (existsSync(join(dir, file))) await cp(join(dir, file), join(home, "etc/istio", file));
  const env = { GRPC_ADDR: "127.0.0.1:0", SECURE_GRPC_ADDR: "", HTTP_ADDR: "", MONITORING_ADDR: "" };
  const plane = await startControlPlane({ program: "istiod", baseDir: home, env, clock: systemClock, log: silentLog, sources: [] });
  try {
    const results: CaseResult[] = [];
    for (const file of readdirSync(join(dir, "nodes")).sort())
      results.push(await runNode(tools, { dir, name, file, port: plane.ports.grpc?.port ?? 0, delta: options.delta }));
    return results;
  } finally {
    await plane.stop();
    await rm(home, { recursive: true, force: true });
  }
}

interface NodeRun {
  readonly dir: string;
  readonly name: string;
  readonly file: string;
  readonly port: number;
  readonly delta: boolean;
}

async function runNode(tools: Tools, { dir, name, file, port, delta }: NodeRun): Promise<CaseResult> {
  const read = (folder: string): unknown => JSON.parse(readFileSync(join(dir, folder, file), "utf8"));
  const base = { id: `${name}/${file.replace(".json", "")}`, feature: name.split("-")[1] ?? "" };
  const judged = (doc: unknown, failure: string | undefined): CaseResult => {
    const result = tools.compare(read("expected"), doc);
    const differing = result.diffs.map(({ type, name }) => `${type}/${name}`);
    return { ...base, score: result, types: result.types, differing, print: (log) => tools.printDiffs(result, { log }), failure };
  };
  try {
    return judged((await tools.capture(`127.0.0.1:${port}`, read("nodes"), { delta })).doc, undefined);
  } catch (error) {
    return judged({}, String(error));
  }
}

async function loadTools(): Promise<Tools> {
  const load = (file: string): Promise<unknown> => import(pathToFileURL(join(CORPUS, file)).href);
  return {
    ...((await load("compare.mjs")) as Pick<Tools, "compare" | "printDiffs">),
    ...((await load("capture.mjs")) as Pick<Tools, "capture">),
  };
}

export function sum(scores: readonly Score[]): Score {
  const total = { total: 0, matched: 0, same: 0, leaves: 0 };
  for (const score of scores) for (const key of ["total", "matched", "same", "leaves"] as const) total[key] += score[key];
  return total;
}

export const fieldAgreement = ({ same, leaves }: Score): number => (leaves === 0 ? 1 : same / leaves);
