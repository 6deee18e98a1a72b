import { chmod, chown, mkdir } from "node:fs/promises";
import { join } from "node:path";
import type { Clock } from "../../../src/base/clock.ts";
import { NotThereYet, type PodFacts } from "./environment.ts";
import type { VolumeSpec } from "./pod.ts";
import { type TokenSource, volumeFiles } from "./volume-files.ts";
import { type Owner, type VolumeFile, writeAtomically } from "./write-atomically.ts";

export interface VolumesOptions {
  /** As they are now: labels may change. */
  readonly facts: () => PodFacts;
  readonly dir: string;
  readonly requestToken: TokenSource;
  readonly clock: Clock;
}

/** The volumes of a pod as directories of this machine. */
export interface Volumes {
  /** Where a volume is. */
  path(name: string): string;
  /** Those made of objects cannot be written to. */
  isReadOnly(name: string): boolean;
  /** Brings those made of objects up to date; a missing object matters only the first time. */
  refresh(): Promise<void>;
  /** Makes the next refresh fetch new tokens. */
  expireTokens(): void;
}

/** Makes them. Throws `NotThereYet` where an object is missing that must be there. */
export async function prepareVolumes({ facts, dir, requestToken, clock }: VolumesOptions): Promise<Volumes> {
  const { volumes = [] } = facts().pod.spec;
  const owner = ownerOf(facts());
  const tokens = keepTokens(requestToken, clock);
  const tokenMode = owner.user === 0 && owner.group === 0 ? undefined : owner.group === 0 ? 0o600 : 0o640;
  const written = new Map<string, ReadonlyMap<string, VolumeFile>>();
  const bring = async (volume: VolumeSpec): Promise<void> => {
    const files = await volumeFiles(volume, { facts: facts(), token: tokens.get, tokenMode });
    if (files === undefined || sameFiles(files, written.get(volume.name))) return;
    await writeAtomically(join(dir, volume.name), files, owner);
    written.set(volume.name, files);
  };
  for (const volume of volumes) {
    const known = volume.emptyDir ?? volume.hostPath ?? volume.configMap ?? volume.secret ?? volume.downwardAPI ?? volume.projected;
    if (known === undefined)
      throw new NotThereYet(`volume ${volume.name} is of a kind that is not known here: ${Object.keys(volume).join()}`);
    if (volume.hostPath === undefined) await makeDirectory(join(dir, volume.name), owner.group);
    await bring(volume);
  }
  // One at a time, or two would write the same volume.
  let last: Promise<void> = Promise.resolve();
  return {
    path: (name) => volumes.find((volume) => volume.name === name)?.hostPath?.path ?? join(dir, name),
    isReadOnly: (name) => written.has(name),
    refresh() {
      last = last.then(async () => {
        for (const volume of volumes) await bring(volume).catch(() => {});
      });
      return last;
    },
    expireTokens: tokens.expire,
  };
}

/** Everybody in the pod may write there; with a group for files, what is made there belongs to it. */
async function makeDirectory(path: string, group: number): Promise<void> {
  await mkdir(path, { recursive: true });
  await chown(path, 0, group);
  await chmod(path, group === 0 ? 0o777 : 0o2777);
}

/** Files belong to the pod's group for files and, where all its containers run as one user, to that user. */
function ownerOf({ pod: { spec } }: PodFacts): Owner {
  const all = [...(spec.initContainers ?? []), ...spec.containers];
  const users = new Set(all.map(({ securityContext }) => securityContext?.runAsUser ?? spec.securityContext?.runAsUser ?? 0));
  const [user = 0] = users;
  return { user: users.size === 1 ? user : 0, group: spec.securityContext?.fsGroup ?? 0 };
}

function sameFiles(files: ReadonlyMap<string, VolumeFile>, before: ReadonlyMap<string, VolumeFile> | undefined): boolean {
  return (
    before !== undefined &&
    files.size === before.size &&
    [...files].every(([path, { data }]) => before.get(path)?.data.equals(data) === true)
  );
}

/** A token is asked for anew when a fifth of its life is left. */
function keepTokens(request: TokenSource, clock: Clock): { readonly get: TokenSource; expire(): void } {
  const kept = new Map<string, { readonly token: string; readonly until: number }>();
  return {
    async get(wanted) {
      const key = `${wanted.audience} ${wanted.expirationSeconds}`;
      const old = kept.get(key);
      if (old !== undefined && clock.now() < old.until) return old.token;
      const token = await request(wanted);
      kept.set(key, { token, until: clock.now() + wanted.expirationSeconds * 800 });
      return token;
    },
    expire: () => kept.clear(),
  };
}
