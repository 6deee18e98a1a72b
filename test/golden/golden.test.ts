import type { JsonObject, JsonValue } from "@bufbuild/protobuf";
import { describe, expect, it } from "vitest";
import { formatPath, type Problem } from "../../src/config/problem.ts";
import type { PatchReport } from "../../src/generate/patches/report.ts";
import { assertEnvoyAcceptsAll, type Offer } from "../support/envoy-validate.ts";
import { grpcRefusals } from "../support/grpc-validate.ts";
import { type GoldenCase, goldenCases, strayFolders } from "../support/golden.ts";
import { type MeshHeader, meshFrom, splitHeader, type TestMesh } from "../support/mesh-from.ts";
import { readableYaml } from "../support/readable-yaml.ts";

/** What a header may say besides the mesh: which outputs are worth reading. All are checked by Envoy whatever is shown. */
interface GoldenHeader extends MeshHeader {
  /** Types to show; by default what the folder is named after, else all. */
  readonly show?: readonly XdsName[];
  /** A regular expression: show only resources whose names it matches. */
  readonly names?: string;
}

const XDS_NAMES = ["cds", "eds", "lds", "rds", "vhds", "ecds"] as const;
/** Names for agents are in every proxy's offer, and shown where a case is about them. */
type XdsName = (typeof XDS_NAMES)[number] | "nds";

const SHOWN_BY_TOPIC: Readonly<Record<string, readonly XdsName[]>> = {
  clusters: ["cds"],
  endpoints: ["eds"],
  listeners: ["lds"],
  routes: ["rds", "vhds"],
  names: ["nds"],
};

const cases = goldenCases(import.meta.dirname);

for (const [topic, list = []] of Object.entries(Object.groupBy(cases, (one) => one.topic))) {
  describe(topic, () => {
    const meshes = new Map<string, TestMesh>();
    const meshOfCase = (one: GoldenCase): TestMesh => {
      const mesh = meshes.get(one.name) ?? meshFrom(one.input);
      meshes.set(one.name, mesh);
      return mesh;
    };
    for (const one of list) it(one.name, async () => one.check(await outputs(one, meshOfCase(one))));

    it(`Envoy and gRPC accept all of ${topic}`, async () => {
      const offers = { envoy: [] as Offer[], grpc: [] as Offer[] };
      for (const one of list) {
        const mesh = meshOfCase(one);
        for (const proxy of mesh.proxies) {
          const reader = proxy.view.generator ?? "envoy";
          offers[reader].push({ label: `${topic}/${one.name} ${proxy.name}`, resources: await mesh.resources(proxy) });
        }
      }
      expect([...offers.envoy, ...offers.grpc].flatMap(foreignExtensions)).toEqual([]);
      expect(offers.grpc.flatMap(grpcRefusals)).toEqual([]);
      await assertEnvoyAcceptsAll(offers.envoy);
    });
  });
}

it("no outputs lack an input", () => expect(strayFolders(import.meta.dirname)).toEqual([]));

/** What only Istio's build of Envoy has. */
const FOREIGN = ["type.googleapis.com/istio.", "istio.metadata_exchange", "istio.stats", "istio.alpn", "istio_authn"];

function foreignExtensions({ label, resources }: Offer): readonly string[] {
  return [...resources.values()].flatMap((set) =>
    [...set.resources.values()].flatMap(({ name, body }) => {
      const text = Buffer.from(body).toString("latin1");
      return FOREIGN.filter((extension) => text.includes(extension)).map((extension) => `${label}: ${extension} in ${name}`);
    }),
  );
}

async function outputs(one: GoldenCase, mesh: TestMesh): Promise<Readonly<Record<string, string>>> {
  const { header } = splitHeader<GoldenHeader>(one.input);
  const files: Record<string, string> = {};
  for (const proxy of mesh.proxies) {
    const json = await mesh.json(proxy);
    for (const type of header.show ?? SHOWN_BY_TOPIC[one.topic] ?? XDS_NAMES) {
      const shown = select(json[type] ?? {}, header.names);
      if (Object.keys(shown).length > 0) files[`${proxy.name}.${type}.yaml`] = readableYaml(shown);
    }
    const failed = [...(await mesh.resources(proxy)).values()].flatMap((set) => set.failed.map(({ name, message }) => ({ name, message })));
    if (failed.length > 0) files[`${proxy.name}.failed.yaml`] = readableYaml(failed);
  }
  const patches = (await mesh.patchReport()).map(patchJson);
  if (patches.length > 0) files["patches.yaml"] = readableYaml(patches);
  // Elsewhere objects may well refer to what a case does not need.
  const problems = [...mesh.problems, ...(one.topic === "invalid" ? mesh.world.problems.all() : [])];
  if (problems.length > 0) files["problems.yaml"] = readableYaml(problems.map(problemJson));
  return files;
}

/** The resources by name, sorted, without what each repeats: its type and its name. */
function select(resources: JsonObject, names: string | undefined): JsonObject {
  const pattern = names === undefined ? undefined : new RegExp(names);
  const wanted = Object.entries(resources).filter(([name]) => pattern?.test(name) ?? true);
  return Object.fromEntries(wanted.sort(([a], [b]) => (a < b ? -1 : 1)).map(([name, value]) => [name, withoutType(value as JsonObject)]));
}

function withoutType({ "@type": _type, name: _name, clusterName: _clusterName, ...rest }: JsonObject): JsonObject {
  return shortTypes(rest) as JsonObject;
}

/** Types of extensions first and without the part they all have in common. */
function shortTypes(value: JsonValue): JsonValue {
  if (Array.isArray(value)) return value.map(shortTypes);
  if (typeof value !== "object" || value === null) return value;
  const { "@type": type, ...rest } = value;
  const fields = Object.fromEntries(Object.entries(rest).map(([key, item]) => [key, shortTypes(item)]));
  return typeof type === "string" ? { "@type": type.replace(/^type.googleapis.com\/(envoy.extensions.)?/, ""), ...fields } : fields;
}

/** What a patch did, in short. */
const patchJson = ({ object, patch, applyTo, operation, proxies, matched, applied, problems, notes }: PatchReport): JsonObject => ({
  patch: `${object} ${patch}: ${operation} ${applyTo}`,
  proxies,
  matched,
  applied,
  ...(problems.length > 0 && { problems: problems.map(({ resource, reason }) => (resource === undefined ? reason : `${resource}: ${reason}`)) }),
  ...(notes.length > 0 && { notes: [...notes] }),
});

const problemJson = ({ code, level, object, path, message, line }: Problem): JsonObject => ({
  [level]: code,
  ...(object.kind !== "" && { object: `${object.kind}/${object.namespace}/${object.name}` }),
  ...(path.length > 0 && { path: formatPath(path) }),
  message,
  ...(line !== undefined && { line }),
});
