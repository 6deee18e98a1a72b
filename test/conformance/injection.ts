// Prints how far injected pods agree with Istio's, case by case. Usage: node test/conformance/injection.ts [--diff] [CASE…]
import { CORPUS, compareCase, hasCorpus, injectionCases } from "./injection-cases.ts";

if (!hasCorpus()) {
  console.log(`injection: skipped, ${CORPUS} is not there`);
  process.exit(0);
}
const flags = process.argv.slice(2);
const wanted = flags.filter((flag) => !flag.startsWith("--"));
let compared = 0;
let agreed = 0;
for (const one of injectionCases()) {
  if (one.expected === undefined || (wanted.length > 0 && !wanted.includes(one.id))) continue;
  const result = compareCase(one);
  compared += result.compared;
  agreed += result.compared - result.differences.length;
  console.log(`${one.id.padEnd(50)} ${result.compared - result.differences.length}/${result.compared}`);
  if (flags.includes("--diff"))
    for (const { path, ours, theirs } of result.differences) console.log(`  ${path}: ${ours} (Istio: ${theirs})`);
}
console.log(`\nTOTAL ${agreed}/${compared} fields, ${((100 * agreed) / compared).toFixed(2)} %`);
