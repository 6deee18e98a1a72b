import { describe, expect, it } from "vitest";
import { type Container, type Fields, isFields, type Pod } from "../../src/inject/pod.ts";
import { workloadObject } from "../../src/inject/workload-object.ts";
import { comparePods } from "./compare-pods.ts";
import { CORPUS, compareCase, documentsOf, hasCorpus, type InjectionCase, injectionCases, runCase } from "./injection-cases.ts";
import { DIFFERENCES, MESH_SETTINGS } from "./injection-differences.ts";

const LEAST_SHARE = 0.98;
const cases = hasCorpus() ? injectionCases() : [];
const injectable = cases.filter(({ expected }) => expected !== undefined);

if (!hasCorpus()) it.skip(`injection: ${CORPUS} is not there`);

const podsOf = (objects: readonly unknown[]): readonly Pod[] =>
  objects.flatMap((object) => {
    const items = isFields(object) && Array.isArray(object.items) ? object.items : [object];
    return items.flatMap((item) => (workloadObject(item)?.pod as Pod | undefined) ?? []);
  });

const namesOf = (containers: readonly Container[] | undefined): readonly string[] => (containers ?? []).map(({ name }) => name);

const isInjected = ({ metadata }: Pod): boolean => metadata?.annotations?.["sidecar.istio.io/status"] !== undefined;

describe.runIf(hasCorpus())("injected pods against Istio's", () => {
  it(`agree in at least ${100 * LEAST_SHARE} % of the fields`, () => {
    const results = injectable.map((one) => compareCase(one));
    const compared = results.reduce((sum, result) => sum + result.compared, 0);
    const different = results.reduce((sum, result) => sum + result.differences.length, 0);
    expect(compared).toBeGreaterThan(10_000);
    expect(1 - different / compared).toBeGreaterThanOrEqual(LEAST_SHARE);
  });

  it("differ only where the list of differences says so, and everything on the list occurs", () => {
    const found = injectable.flatMap((one) => compareCase(one).differences.map(({ path }) => `${one.id}: ${path}`));
    expect(found.filter((line) => !DIFFERENCES.some(([field]) => field.test(line)))).toEqual([]);
    expect(DIFFERENCES.filter(([field]) => !found.some((line) => field.test(line)))).toEqual([]);
    const all = injectable.flatMap((one) => rawDifferences(one));
    expect(MESH_SETTINGS.filter(([field]) => !all.some((path) => field.test(path)))).toEqual([]);
  });

  for (const one of cases.filter(({ options }) => options.errorContains !== undefined)) {
    it(`refuses ${one.id} with a sentence that names the field`, () => {
      const faults = runCase(one).flatMap((result) => result.faults);
      expect(faults.join("\n").toLowerCase()).toContain(one.options.errorContains);
    });
  }

  for (const one of injectable) {
    it(`${one.id}: invariants hold, and injecting again changes nothing`, () => {
      const objects = runCase(one).map(({ object }) => object);
      const before = podsOf(documentsOf(one.inputs[0] ?? ""));
      for (const [index, pod] of podsOf(objects).entries()) {
        const original = before[index];
        if (original !== undefined && isInjected(pod) && !isInjected(original)) checkInvariants(pod, original);
      }
      const again = runCase(one, objects).map(({ object }) => object);
      expect(comparePods(again, objects).differences).toEqual([]);
      expect(podsOf(again).map((pod) => [namesOf(pod.spec.initContainers), namesOf(pod.spec.containers)])).toEqual(
        podsOf(objects).map((pod) => [namesOf(pod.spec.initContainers), namesOf(pod.spec.containers)]),
      );
    });
  }
});

function rawDifferences(one: InjectionCase): readonly string[] {
  const ours = runCase(one).map(({ object }) => object);
  return comparePods(ours, documentsOf(one.expected?.[0] ?? "")).differences.map(({ path }) => path);
}

/** What must hold for any injected pod, whatever Istio does. */
function checkInvariants(pod: Pod, original: Pod): void {
  const all = [...(pod.spec.initContainers ?? []), ...(pod.spec.containers ?? [])];
  const names = namesOf(all);
  expect(new Set(names).size, "every container once").toBe(names.length);
  const volumes = new Set((pod.spec.volumes ?? []).map(({ name }) => name));
  expect(volumes.size, "every volume once").toBe(pod.spec.volumes?.length ?? 0);
  for (const volume of pod.spec.volumes ?? []) expect(Object.keys(volume).length, `one source of ${volume.name}`).toBeLessThanOrEqual(2);
  for (const container of all) {
    for (const { name } of (container.volumeMounts ?? []) as Fields[])
      expect(volumes.has(String(name)) || (original.spec.volumes ?? []).some((volume) => volume.name === name), `volume ${name}`).toBe(
        true,
      );
    expect(new Set(namesOf(container.env as Container[] | undefined)).size, `variables of ${container.name} once`).toBe(
      container.env?.length ?? 0,
    );
    expect(container.image ?? "", `image of ${container.name}`).not.toBe("auto");
  }
  const init = namesOf(pod.spec.initContainers);
  const own = namesOf(original.spec.initContainers).filter((name) => !name.startsWith("istio-"));
  expect(
    init.filter((name) => own.includes(name)),
    "order of the user's init containers",
  ).toEqual(own);
  if (init.includes("istio-proxy") && init.includes("istio-init")) expect(init.slice(0, 2)).toEqual(["istio-init", "istio-proxy"]);
  if (init.includes("istio-init") && !init.includes("istio-proxy")) expect(init.at(-1)).toBe("istio-init");
}
