import { readFileSync } from "node:fs";
import { join } from "node:path";
import { beforeAll, describe, expect, it } from "vitest";
import { assertEnvoyAcceptsAll, type Offer } from "../support/envoy-validate.ts";
import { corpusMesh } from "./corpus-mesh.ts";
import { type CaseResult, CORPUS, caseNames, fieldAgreement, hasCorpus, runCase, type Score, sum } from "./xds-cases.ts";

/** Agreement with Istio that is kept, in percent of fields: of all cases, and of each feature so that none gets worse behind the others. */
const FLOOR = 99.9;
const FEATURE_FLOOR = 99.5;

/** Cases that are served at the same time: each spends most of its time waiting for quiet. */
const LANES = 8;

if (!hasCorpus()) {
  console.log(`skipped: no corpus at ${CORPUS}`);
  it.skip("xDS corpus: ../shared is not there", () => {});
} else {
  describe("xDS corpus", () => {
    const results: CaseResult[] = [];
    const features = [...new Set(caseNames().map((name) => name.split("-")[1] ?? ""))].sort();

    beforeAll(async () => {
      const left = [...caseNames()];
      const lane = async (): Promise<void> => {
        for (let name = left.shift(); name !== undefined; name = left.shift()) results.push(...(await runCase(name, { delta: true })));
      };
      await Promise.all(Array.from({ length: LANES }, lane));
      console.log(summary(results));
    });

    it("serves every proxy", () =>
      expect(results.filter(({ failure }) => failure !== undefined).map(({ id, failure }) => `${id}: ${failure}`)).toEqual([]));

    it(`agrees with Istio on at least ${FLOOR} % of all fields`, () => expect(percent(results)).toBeGreaterThanOrEqual(FLOOR));

    it.for(features)("agrees no less than it did on %s", (feature) => {
      expect(percent(results.filter((one) => one.feature === feature))).toBeGreaterThanOrEqual(FEATURE_FLOOR);
    });

    it("differs where differences.md says so, and nowhere else", () => {
      const found = results.flatMap(({ id, differing }) => differing.map((resource) => `${id} ${resource}`));
      expect(found.sort()).toEqual(explained().sort());
    });

    it("Envoy accepts what every proxy is offered", async () => {
      const offers: Offer[] = [];
      const failed: string[] = [];
      for (const name of caseNames()) {
        const mesh = corpusMesh(name);
        for (const proxy of mesh.proxies) {
          const resources = await mesh.resources(proxy);
          offers.push({ label: proxy.name, resources });
          for (const set of resources.values()) failed.push(...set.failed.map((one) => `${proxy.name} ${one.name}: ${one.message}`));
        }
      }
      expect(failed).toEqual([]);
      await assertEnvoyAcceptsAll(offers);
    });
  });
}

/** The rows of differences.md: the proxy of a case, a resource of it, and the reason. */
function explained(): string[] {
  const text = readFileSync(join(import.meta.dirname, "differences.md"), "utf8");
  return [...text.matchAll(/^\| `([^`]+)` \| `([^`]+)` \| \S/gm)].map(
    ([, id, resource = ""]) => `${id} ${resource.replaceAll("\\|", "|")}`,
  );
}

const percent = (results: readonly CaseResult[]): number => 100 * fieldAgreement(sum(results.map(({ score }) => score)));

function summary(results: readonly CaseResult[]): string {
  const line = (name: string, score: Score): string => `${(100 * fieldAgreement(score)).toFixed(1).padStart(6)} %  ${name}`;
  const byFeature = Object.entries(Object.groupBy(results, ({ feature }) => feature)).sort(([a], [b]) => (a < b ? -1 : 1));
  const lines = byFeature.map(([feature, list = []]) => line(`${feature} (${list.length} proxies)`, sum(list.map(({ score }) => score))));
  return [
    "xDS: fields that agree with Istio's",
    ...lines,
    line(`of all ${results.length} proxies`, sum(results.map(({ score }) => score))),
  ].join("\n");
}
