import type { KubeClient } from "./kube-client.ts";
import { KubeError } from "./kube-error.ts";

/** A kind that may or may not be installed, with the versions we can read, preferred first. */
export interface WantedKind {
  readonly group: string;
  readonly versions: readonly string[];
  readonly plural: string;
}

/** `group/plural`. */
export const wantedKey = ({ group, plural }: Pick<WantedKind, "group" | "plural">): string => `${group}/${plural}`;

/**
 * Which of the kinds the API server serves, and in which of our versions. Each group and version is asked for by itself: what others have installed
 * does not matter. Throws where the server cannot say: not knowing is not absence.
 */
export async function installedKinds(
  client: Pick<KubeClient, "request">,
  wanted: readonly WantedKind[],
  signal?: AbortSignal,
): Promise<ReadonlyMap<string, string>> {
  const groupVersions = new Set(wanted.flatMap(({ group, versions }) => versions.map((version) => `${group}/${version}`)));
  const served = new Map<string, ReadonlySet<string>>();
  await Promise.all(
    [...groupVersions].map(async (groupVersion) => {
      served.set(groupVersion, await pluralsOf(client, groupVersion, signal));
    }),
  );
  const found = new Map<string, string>();
  for (const kind of wanted) {
    const version = kind.versions.find((one) => served.get(`${kind.group}/${one}`)?.has(kind.plural) === true);
    if (version !== undefined) found.set(wantedKey(kind), version);
  }
  return found;
}

async function pluralsOf(
  client: Pick<KubeClient, "request">,
  groupVersion: string,
  signal: AbortSignal | undefined,
): Promise<ReadonlySet<string>> {
  try {
    const list = (await client.request({ path: `/apis/${groupVersion}`, signal })) as {
      readonly resources?: readonly { readonly name?: string }[];
    };
    return new Set((list.resources ?? []).flatMap(({ name }) => name ?? []));
  } catch (error) {
    if (error instanceof KubeError && error.isNotFound) return new Set();
    throw error;
  }
}
