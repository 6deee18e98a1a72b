import { relative } from "node:path";
import fc from "fast-check";
import { expect } from "vitest";

type Env = Readonly<Record<string, string | undefined>>;

/**
 * Runs a property, as `fc.assert` does. All properties run through here, so that a failure says how to repeat it, and can be repeated: FC_SEED and FC_PATH
 * lead straight to the minimised case, and FC_RUNS draws as many times as it says, or as many as there is time for, whatever the test says. A case that failed once
 * is kept as one of the `examples` of its property, which are tried before anything is drawn.
 */
export function holds<Ts>(property: fc.IAsyncProperty<Ts>, parameters?: fc.Parameters<Ts>): Promise<void>;
export function holds<Ts>(property: fc.IProperty<Ts>, parameters?: fc.Parameters<Ts>): void;
export function holds<Ts>(property: fc.IRawProperty<Ts>, parameters: fc.Parameters<Ts> = {}): Promise<void> | void {
  const given = { ...LIMITS, ...parameters, ...parametersOf(process.env) };
  const place = placeOfTest();
  if (property.isAsync()) return heldLater(property as fc.IAsyncProperty<Ts>, given, place);
  const details = fc.check(property as fc.IProperty<Ts>, given);
  if (details.failed) throw new Error(reportOf(details, fc.defaultReportMessage(details), place), { cause: details.errorInstance });
}

/** A failure that is still being minimised is told before the test runs out of time, or nobody would hear of it. */
const LIMITS = { interruptAfterTimeLimit: 90_000, markInterruptAsFailure: true } as const;

async function heldLater<Ts>(property: fc.IAsyncProperty<Ts>, parameters: fc.Parameters<Ts>, place: Place): Promise<void> {
  const details = await fc.check(property, parameters);
  if (details.failed)
    throw new Error(reportOf(details, await fc.asyncDefaultReportMessage(details), place), { cause: details.errorInstance });
}

/** What the environment says of how properties are run. */
export function parametersOf({
  FC_SEED,
  FC_PATH,
  FC_RUNS,
}: Env): Pick<fc.Parameters, "seed" | "path" | "numRuns" | "endOnFailure" | "markInterruptAsFailure"> {
  return {
    ...(FC_SEED && { seed: Number(FC_SEED) }),
    ...(FC_PATH && { path: FC_PATH, endOnFailure: true, numRuns: 1 }),
    ...(FC_RUNS && { numRuns: Number(FC_RUNS), markInterruptAsFailure: false }),
  };
}

interface Place {
  readonly file: string;
  readonly test: string;
}

function placeOfTest(): Place {
  const { testPath = "", currentTestName = "" } = expect.getState();
  return { file: relative(process.cwd(), testPath), test: currentTestName };
}

const reportOf = <Ts>({ seed, counterexamplePath }: fc.RunDetails<Ts>, report: string | undefined, { file, test }: Place): string =>
  `${report ?? "a property does not hold"}\n\nRepeat it with\n  ${[
    `FC_SEED=${seed}`,
    ...(counterexamplePath === null ? [] : [`FC_PATH=${counterexamplePath}`]),
    `npx vitest run ${file} -t ${quoted(test.replaceAll(" > ", " "))}`,
  ].join(" ")}\nand keep the minimised case among the examples of the property.`;

/** For a shell and for Vitest, which takes a regular expression. */
const quoted = (text: string): string => `'${text.replace(/[\\^$.*+?()[\]{}|]/g, "\\$&").replaceAll("'", ".")}'`;
