import { existsSync, readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { parseDocument } from "../../src/config/documents/parse-document.ts";
import { splitDocuments } from "../../src/config/documents/split-documents.ts";
import { withMeshDefaults } from "../../src/config/mesh/defaults.ts";
import { mergeMaps } from "../../src/config/mesh/merge-layers.ts";
import { readMessage } from "../../src/config/parse/read-message.ts";
import { MeshConfigSchema } from "../../src/gen/istio/mesh/v1alpha1/mesh_config_pb.js";
import { type InjectedObject, injectObject } from "../../src/inject/inject-object.ts";
import { DEFAULT_INJECTION, readInjectionConfig } from "../../src/inject/injection-config.ts";
import type { InjectionSettings } from "../../src/inject/injection-request.ts";
import { type Fields, isFields } from "../../src/inject/pod.ts";
import { templateSet } from "../../src/inject/template-set.ts";
import { readValues } from "../../src/inject/values.ts";
import { workloadObject } from "../../src/inject/workload-object.ts";
import { type Comparison, comparePods, type Difference } from "./compare-pods.ts";
import { MESH_SETTINGS } from "./injection-differences.ts";

export const CORPUS = resolve(import.meta.dirname, "../../../shared/conformance/injection");
export const hasCorpus = (): boolean => existsSync(join(CORPUS, "index.json"));

/** One case of the corpus. */
export interface InjectionCase {
  readonly id: string;
  readonly inputs: readonly string[];
  readonly expected?: readonly string[];
  readonly options: {
    readonly set?: readonly string[];
    readonly env?: Readonly<Record<string, string>>;
    readonly meshConfig?: Fields;
    readonly installOverlay?: string;
    readonly errorContains?: string;
  };
}

interface Index {
  readonly cases: readonly InjectionCase[];
  readonly context: { readonly namespaces: readonly { readonly annotations: Readonly<Record<string, string>> }[] };
}

const readText = (file: string): string => readFileSync(join(CORPUS, file), "utf8");
const readJson = (file: string): Fields => JSON.parse(readText(file)) as Fields;
const index = (): Index => readJson("index.json") as unknown as Index;

export const injectionCases = (): readonly InjectionCase[] => index().cases;

/** The documents of a file, lists taken apart. */
export const documentsOf = (file: string): readonly unknown[] =>
  splitDocuments(readText(file)).flatMap(({ text }) => {
    const parsed = parseDocument(text);
    if ("fault" in parsed) throw new Error(`${file}: ${parsed.fault}`);
    return parsed.parts.map(({ content }) => content);
  });

/** The settings that Istio's test of a case installs. */
export function settingsOf({ options }: InjectionCase): InjectionSettings {
  const overlay = options.installOverlay === undefined ? {} : valuesOfOverlay(options.installOverlay);
  const layers = [readJson("values.default.json"), overlay, ...(options.set ?? []).map(valuesOfFlag)];
  const written = layers.reduce((base, over) => withNulls(base, over));
  const values = readValues(written);
  if ("faults" in values) throw new Error(values.faults.join("; "));
  const read = readInjectionConfig(isFields(written.sidecarInjectorWebhook) ? written.sidecarInjectorWebhook : {});
  if ("faults" in read) throw new Error(read.faults.join("; "));
  const config = { ...DEFAULT_INJECTION, ...read.config };
  const json = mergeMaps(readJson("meshConfig.default.json"), options.meshConfig ?? {}, MeshConfigSchema);
  const mesh = withMeshDefaults({ message: readMessage(MeshConfigSchema, json, { report: () => {}, path: [] }), json });
  return {
    config,
    templates: templateSet(config),
    values: values.values,
    mesh,
    revision: "default",
    compliancePolicy: options.env?.COMPLIANCE_POLICY ?? "",
  };
}

/** Injects every document of a case's input. */
export function runCase(one: InjectionCase, documents = documentsOf(one.inputs[0] ?? "")): readonly InjectedObject[] {
  const settings = settingsOf(one);
  const { env = {} } = one.options;
  const [namespace] = index().context.namespaces;
  const context = {
    namespace: "",
    native: env.ENABLE_NATIVE_SIDECARS !== "false",
    ...(env.PLATFORM === "openshift" && namespace !== undefined && { openShift: namespace.annotations }),
  };
  return documents.map((document) => injectObject(document, settings, context));
}

/** Metadata and spec of the pods in a case's result against those that Istio gives, settings of the mesh in the environment aside. */
export function compareCase(one: InjectionCase): Comparison {
  const results = runCase(one);
  const faults = results.flatMap((result) => result.faults);
  if (faults.length > 0) throw new Error(`${one.id}: ${faults.join("; ")}`);
  const theirs = documentsOf(one.expected?.[0] ?? "");
  if (theirs.length !== results.length) throw new Error(`${one.id}: ${results.length} documents instead of ${theirs.length}`);
  const parts = results.map(({ object }, at) => comparePods(podOf(object), podOf(theirs[at])));
  const aside = ({ path }: Difference): boolean => MESH_SETTINGS.some(([field]) => field.test(path));
  const all = parts.flatMap(({ differences }) => differences);
  const differences = all.filter((difference) => !aside(difference));
  return { compared: parts.reduce((sum, part) => sum + part.compared, 0) - (all.length - differences.length), differences };
}

/** The pod of a workload; of anything else the whole object, which must be as it was. */
function podOf(object: unknown): unknown {
  const pod = workloadObject(object)?.pod;
  if (pod === undefined || !isFields(object)) return object;
  return object.kind === "CronJob" ? { [JOB]: jobOf(object), ...pod } : pod;
}

/** Where Istio puts what it adds to a CronJob's metadata. */
const JOB = "job of a CronJob";

function jobOf({ spec }: Fields): unknown {
  return isFields(spec) && isFields(spec.jobTemplate) ? spec.jobTemplate.metadata : undefined;
}

function valuesOfOverlay(file: string): Fields {
  const [overlay] = documentsOf(file);
  const spec = isFields(overlay) && isFields(overlay.spec) ? overlay.spec : {};
  return isFields(spec.values) ? spec.values : {};
}

/** `values.a.b=c`; the CNI component switches the values of the same name on. */
function valuesOfFlag(flag: string): Fields {
  const [path = "", value = ""] = flag.split("=");
  const steps = path
    .replace(/^components\.cni\.enabled$/, "values.pilot.cni.enabled")
    .replace(/^values\.cni\./, "values.pilot.cni.")
    .split(".")
    .slice(1);
  return steps.reduceRight<unknown>((inner, step) => ({ [step]: inner }), value === "true" ? true : value) as Fields;
}

/** Helm's way: maps are joined, and a null stays to say that something is to be left out. */
function withNulls(base: Fields, over: Fields): Fields {
  const result = { ...base };
  for (const [key, value] of Object.entries(over)) {
    const before = result[key];
    result[key] = isFields(before) && isFields(value) ? withNulls(before, value) : value;
  }
  return result;
}
