// Prints how far the configuration we generate agrees with Istio's, case by case. Usage: npm run conformance -- [--diff] [--sotw] [CASE-PREFIX…]
import { type CaseResult, CORPUS, caseNames, fieldAgreement, hasCorpus, runCase, type Score, sum } from "./xds-cases.ts";

if (!hasCorpus()) {
  console.log(`conformance: skipped, ${CORPUS} is not there`);
  process.exit(0);
}
const flags = process.argv.slice(2);
const wanted = flags.filter((flag) => !flag.startsWith("--"));
const results: CaseResult[] = [];
const line = (name: string, score: Score): void =>
  console.log(
    `${name.padEnd(44)} resources ${String(score.matched).padStart(5)}/${String(score.total).padEnd(5)} fields ${(100 * fieldAgreement(score)).toFixed(1).padStart(6)} %`,
  );
for (const name of caseNames(wanted)) {
  for (const result of await runCase(name, { delta: !flags.includes("--sotw") })) {
    results.push(result);
    line(result.id, result.score);
    if (result.failure !== undefined) console.log(`  failed: ${result.failure}`);
    if (flags.includes("--diff")) result.print((text) => console.log(text));
  }
}
const grouped = (title: string, groups: Readonly<Record<string, readonly Score[]>>): void => {
  console.log(`\n${title}`);
  for (const [name, scores] of Object.entries(groups).sort()) line(`  ${name}`, sum(scores));
};
const typed = results.flatMap(({ types }) => Object.entries(types));
const byType = Object.fromEntries([...Map.groupBy(typed, ([type]) => type)].map(([type, list]) => [type, list.map(([, score]) => score)]));
const byFeature = Object.groupBy(results, ({ feature }) => feature);
grouped(
  "by feature",
  Object.fromEntries(Object.entries(byFeature).map(([feature, list]) => [feature, (list ?? []).map(({ score }) => score)])),
);
grouped("by type", byType);
console.log("");
line("TOTAL", sum(results.map(({ score }) => score)));
process.exit(0);
