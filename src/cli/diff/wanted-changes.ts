import { basename, dirname, relative } from "node:path";
import { EdgeError } from "../../base/errors.ts";
import { KINDS } from "../../config/kinds/index.ts";
import { judgeMesh, type LoadedMesh } from "../../config/mesh/load-mesh.ts";
import { type MeshFiles, readMeshFilesIn } from "../../config/mesh/mesh-files.ts";
import { meshProblemsSentence } from "../../config/mesh/mesh-problems.ts";
import { compareReload } from "../../config/mesh/reload.ts";
import { type ConfigObject, formatOrigin, objectKey } from "../../config/object.ts";
import { readObject } from "../../config/read-object.ts";
import type { MeshConfig } from "../../gen/istio/mesh/v1alpha1/mesh_config_pb.js";
import type { MeshNetworks } from "../../gen/istio/mesh/v1alpha1/mesh_networks_pb.js";
import type { World } from "../../generate/world.ts";
import { usageError } from "../arguments.ts";
import type { Host } from "../command.ts";
import { type DocumentRecord, judgeDocuments } from "../validate/document-record.ts";
import { readTargets, type Targets } from "../validate/read-targets.ts";
import { admittedObjects, type Objects } from "./admitted-objects.ts";
import type { CurrentMesh } from "./current-mesh.ts";

/** What the user asks about. */
export interface Question {
  /** Files, directories, `-`. */
  readonly put: readonly string[];
  /** `KIND/NAMESPACE/NAME`. */
  readonly remove: readonly string[];
  /** Objects of the current configuration that `put` does not have are removed too. */
  readonly prune: boolean;
  /** Of objects that carry none. */
  readonly namespace: string | undefined;
}

/** One object that would change. */
export interface ObjectChange {
  readonly change: "added" | "changed" | "removed";
  /** `DestinationRule/shop/reviews`. */
  readonly object: string;
  /** Where the new version is written; of a removed one where it is written now. */
  readonly place: string;
}

/** One write on top of the current inputs. */
export type InputChange = Parameters<World["engine"]["overlay"]>[0][number];

/** A change, ready to be tried. */
export interface WantedChange {
  readonly inputs: readonly InputChange[];
  readonly objects: readonly ObjectChange[];
  /** All objects that would count. */
  readonly after: Objects;
  readonly notes: readonly string[];
}

/** The same before it is known to be in order. */
export type JudgedChange =
  | { readonly ok: true; readonly change: WantedChange }
  | { readonly ok: false; readonly records: readonly DocumentRecord[] };

/** Reads what the user asks about. Anything invalid among it is an answer of its own, since it would not come into force. */
export async function wantedChange(
  question: Question,
  current: CurrentMesh,
  host: Pick<Host, "cwd" | "stdin" | "env">,
): Promise<JudgedChange> {
  const targets = await readTargets(question.put, host, question.namespace);
  const records = [...targets.mesh.flatMap((one) => one.records), ...judgeDocuments(targets.documents)];
  if (records.some(({ valid }) => !valid)) return { ok: false, records };
  const mesh = await meshChange(targets, current, host);
  const put = putObjects(targets, current);
  const keys = new Set(put.map(({ key }) => key));
  const removed = [
    ...new Set([...question.remove.map((word) => removedKey(word, current)), ...(question.prune ? pruned(keys, current) : [])]),
  ];
  for (const key of removed) if (keys.has(key)) throw usageError(`${key} is both in the files and to be removed`);
  const differing = put.filter(({ change }) => change !== undefined);
  const all = new Map([...current.objects, ...put.map(({ key, object }): [string, ConfigObject] => [key, object])]);
  for (const key of removed) all.delete(key);
  const after = admittedObjects(all, mesh.config);
  const change: WantedChange = {
    inputs: [...mesh.inputs, ...inputChanges(current, after)],
    objects: [
      ...differing.flatMap(({ key, place, change: kind }) => (kind === undefined ? [] : [{ change: kind, object: key, place }])),
      ...removed.map((key): ObjectChange => ({ change: "removed", object: key, place: placeOf(key, current, host.cwd) })),
    ],
    after,
    notes: [
      ...mesh.notes,
      ...warningsOf(records),
      ...ignoredNotes(differing, after),
      ...secretNote([...differing.map(({ key }) => key), ...removed]),
    ],
  };
  return { ok: true, change };
}

/** Secrets are no inputs. */
function inputChanges({ world, objects, mesh }: CurrentMesh, after: Objects): readonly InputChange[] {
  const before = admittedObjects(objects, mesh);
  const table = world.inputs.objects as InputChange["table"];
  return [...new Set([...before.keys(), ...after.keys()])]
    .filter((key) => before.get(key)?.hash !== after.get(key)?.hash && !isSecret(key))
    .map((key) => ({ table, key, value: after.get(key) }));
}

const isSecret = (key: string): boolean => key.startsWith("Secret/");

function ignoredNotes(put: readonly PutObject[], after: Objects): readonly string[] {
  const namespaces = put.filter(({ key }) => !after.has(key)).map(({ object }) => object.namespace);
  return [...new Set(namespaces)].map((one) => `the namespace ${one} is not among the discoverySelectors: its objects are ignored`);
}

interface PutObject {
  readonly key: string;
  readonly object: ConfigObject;
  readonly place: string;
  readonly change: "added" | "changed" | undefined;
}

/** Where two documents are the same object the first one counts, as in the store. */
function putObjects({ documents }: Targets, { objects }: CurrentMesh): readonly PutObject[] {
  const put = new Map<string, PutObject>();
  for (const raw of documents) {
    const { object } = readObject(raw);
    if (object === undefined) continue;
    const key = objectKey(object);
    if (put.has(key)) continue;
    const before = objects.get(key);
    const change = before === undefined ? "added" : before.hash === object.hash ? undefined : "changed";
    put.set(key, { key, object, place: formatOrigin(raw.origin), change });
  }
  return [...put.values()];
}

/** The key of an object that is to go. Kinds may be written as kubectl takes them: `dr`, `destinationrules`. */
function removedKey(word: string, { objects }: CurrentMesh): string {
  const [written = "", namespace = "", name = "", ...more] = word.split("/");
  if (name === "" || more.length > 0) throw usageError(`--remove takes KIND/NAMESPACE/NAME, not ${JSON.stringify(word)}`);
  const lower = written.toLowerCase();
  const def = KINDS.find(({ kind, plural, singular, shortNames }) => [kind.toLowerCase(), plural, singular, ...shortNames].includes(lower));
  if (def === undefined) throw usageError(`--remove ${word}: there is no kind ${JSON.stringify(written)}`);
  const key = objectKey({ kind: def.kind, namespace, name });
  if (!objects.has(key)) throw new EdgeError("not_found", `there is no ${key} in the current configuration`);
  return key;
}

const pruned = (kept: ReadonlySet<string>, { objects }: CurrentMesh): readonly string[] =>
  [...objects.keys()].filter((key) => !kept.has(key));

function placeOf(key: string, { store }: CurrentMesh, cwd: string): string {
  const origin = store.origin(key);
  if (origin?.file === undefined) return "";
  const below = relative(cwd, origin.file);
  return formatOrigin({ ...origin, file: below.startsWith("..") ? origin.file : below });
}

/** mesh.yaml and networks.yaml among the files stand in the place of the current ones. */
async function meshChange(
  { mesh }: Targets,
  current: CurrentMesh,
  { env }: Pick<Host, "env">,
): Promise<Pick<WantedChange, "inputs" | "notes"> & { readonly config: LoadedMesh }> {
  let files: MeshFiles = current.files;
  for (const { found } of mesh) {
    const isNetworks = /^networks\.ya?ml$/i.test(basename(found.path));
    const read = await readMeshFilesIn(dirname(found.path), isNetworks ? undefined : basename(found.path));
    files = isNetworks ? { ...files, networks: read.networks } : { ...files, layers: read.layers };
  }
  if (mesh.length === 0) return { inputs: [], notes: [], config: current.mesh };
  const load = judgeMesh(files, { baseDir: current.baseDir, env });
  if (!load.ok) throw new EdgeError("mesh_config_invalid", meshProblemsSentence(load.problems));
  const { changes, meshChanged, networksChanged } = compareReload(current.mesh, load.config);
  const { world } = current;
  const row = (table: InputChange["table"], key: string, value: MeshConfig | MeshNetworks): InputChange => ({ table, key, value });
  return {
    inputs: [
      ...(meshChanged ? [row(world.inputs.mesh as InputChange["table"], "mesh", load.config.mesh)] : []),
      ...(networksChanged ? [row(world.inputs.networks as InputChange["table"], "networks", load.config.networks)] : []),
    ],
    notes: changes.map(({ sentence }) => sentence),
    config: load.config,
  };
}

const warningsOf = (records: readonly DocumentRecord[]): readonly string[] =>
  records.flatMap(({ file, problems }) =>
    problems.map(({ line, path, message, code }) => `${file}:${line}: ${path === "" ? "" : `${path}: `}${message} [${code}]`),
  );

function secretNote(keys: readonly string[]): readonly string[] {
  const secrets = keys.filter(isSecret).length;
  return secrets === 0 ? [] : ["Secrets reach proxies over SDS and are not compared"];
}
