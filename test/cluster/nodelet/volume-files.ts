import { dataOf, fieldOf, NotThereYet, type PodFacts, resourceOf } from "./environment.ts";
import type { ContainerSpec, DownwardItem, Item, ProjectedSource, TrustBundleSource, VolumeSpec } from "./pod.ts";
import type { VolumeFile } from "./write-atomically.ts";

/** Gives a token of the pod's service account. */
export type TokenSource = (request: { readonly audience?: string; readonly expirationSeconds: number }) => Promise<string>;

export interface VolumeContext {
  readonly facts: PodFacts;
  readonly token: TokenSource;
  /** Tokens are for their reader alone where it is known who that is. */
  readonly tokenMode: number | undefined;
}

const DEFAULT_MODE = 0o644;
const TOKEN_SECONDS = 3600;

/** The files of a volume that is made of objects; undefined for other volumes. Throws `NotThereYet` where an object is missing. */
export async function volumeFiles(volume: VolumeSpec, context: VolumeContext): Promise<ReadonlyMap<string, VolumeFile> | undefined> {
  const { configMap, secret, downwardAPI, projected } = volume;
  const defaultMode = (configMap ?? secret ?? downwardAPI ?? projected)?.defaultMode ?? DEFAULT_MODE;
  const sources = sourcesOf(volume);
  if (sources === undefined) return undefined;
  const files = new Map<string, VolumeFile>();
  for (const source of sources) for (const [path, file] of await sourceFiles(source, context, defaultMode)) files.set(path, file);
  return files;
}

function sourcesOf({ configMap, secret, downwardAPI, projected }: VolumeSpec): readonly ProjectedSource[] | undefined {
  if (projected !== undefined) return projected.sources ?? [];
  if (configMap !== undefined) return [{ configMap }];
  if (secret !== undefined) return [{ secret: { ...secret, name: secret.secretName } }];
  return downwardAPI === undefined ? undefined : [{ downwardAPI }];
}

type Files = readonly (readonly [path: string, file: VolumeFile])[];

async function sourceFiles(source: ProjectedSource, context: VolumeContext, defaultMode: number): Promise<Files> {
  const { configMap, secret, downwardAPI, serviceAccountToken, clusterTrustBundle } = source;
  const { facts, token, tokenMode } = context;
  const bundle = configMap ?? secret;
  if (bundle !== undefined) {
    const data = await dataOf(facts, configMap === undefined ? "Secret" : "ConfigMap", bundle);
    return data === undefined ? [] : chosen(data, bundle.items, defaultMode);
  }
  if (downwardAPI !== undefined) return (downwardAPI.items ?? []).map((item) => [item.path, downwardFile(item, facts, defaultMode)]);
  if (clusterTrustBundle !== undefined) return trustFiles(clusterTrustBundle, facts, defaultMode);
  if (serviceAccountToken === undefined)
    throw new Error(`a projected volume has a source that is not known here: ${Object.keys(source).join()}`);
  const { audience, expirationSeconds = TOKEN_SECONDS, path } = serviceAccountToken;
  const text = await token({ expirationSeconds, ...(audience && { audience }) });
  return [[path, { data: Buffer.from(text), mode: tokenMode ?? defaultMode }]];
}

async function trustFiles(source: TrustBundleSource, facts: PodFacts, mode: number): Promise<Files> {
  const bundle = await facts.trustBundle(source);
  if (bundle === undefined && source.optional !== true) throw new NotThereYet(`no ClusterTrustBundle ${source.name ?? source.signerName}`);
  return [[source.path, { data: Buffer.from(bundle ?? ""), mode }]];
}

function chosen(data: Readonly<Record<string, Buffer>>, items: readonly Item[] | undefined, defaultMode: number): Files {
  if (items === undefined) return Object.entries(data).map(([key, value]) => [key, { data: value, mode: defaultMode }]);
  return items.flatMap(({ key, path, mode = defaultMode }) =>
    data[key] === undefined ? [] : [[path, { data: data[key], mode }] as const],
  );
}

function downwardFile({ fieldRef, resourceFieldRef }: DownwardItem, facts: PodFacts, mode: number): VolumeFile {
  const none: ContainerSpec = { name: "", image: "" };
  const text = resourceFieldRef === undefined ? fieldOf(fieldRef?.fieldPath ?? "", facts) : resourceOf(resourceFieldRef, none, facts);
  return { data: Buffer.from(text), mode };
}
