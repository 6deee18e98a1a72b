import type { Clock } from "../../base/clock.ts";
import { findImage, sha256Of } from "./fetch-image.ts";
import { type FetchLimits, httpGet } from "./http-get.ts";
import { readImageReference } from "./image-reference.ts";
import { loginFor, machineLogins } from "./registry-credentials.ts";
import type { RemoteModule } from "./remote-module.ts";
import { unpackModule } from "./unpack.ts";

/** What was found behind a URL, before it is downloaded where that can be told. */
export interface FoundModule {
  /** Hex digests by which it may be named. */
  readonly digests: readonly string[];
  bytes(): Promise<Buffer>;
}

/** Something that will pass: worth another try. */
class PassingFault extends Error {}

export interface FetchOptions extends Omit<FetchLimits, "signal"> {
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly attempts: number;
  readonly clock: Clock;
}

const FIRST_PAUSE_MS = 500;

/** Finds a module over HTTP or in a registry; what fails for the moment is tried again, within one time limit. Rejects with a sentence. */
export async function findModule(module: RemoteModule, signal: AbortSignal, options: FetchOptions): Promise<FoundModule> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await findOnce(module, { ...options, signal });
    } catch (error) {
      if (!isPassing(error) || attempt >= options.attempts || signal.aborted) throw error;
      await options.clock.sleep(FIRST_PAUSE_MS * 2 ** (attempt - 1), signal).catch(() => {
        throw error;
      });
    }
  }
}

/** Faults of the network have a code; so has one that another server may mend. */
const isPassing = (error: unknown): boolean => error instanceof PassingFault || (error instanceof Error && "code" in error);

type Limits = FetchLimits & Pick<FetchOptions, "env">;

async function findOnce(module: RemoteModule, limits: Limits): Promise<FoundModule> {
  const { url } = module;
  if (url.startsWith("oci://")) return findInRegistry(module, limits);
  const parsed = URL.parse(url);
  if (parsed === null || !/^https?:$/.test(parsed.protocol)) throw new Error(`modules are not fetched from ${JSON.stringify(url)}`);
  const { status, body } = await httpGet(parsed, {}, limits);
  if (status >= 500) throw new PassingFault(`${parsed.host} answers with status ${status}`);
  if (status !== 200) throw new Error(`${parsed.host} answers with status ${status}`);
  const bytes = await unpackModule(body, limits.mostBytes);
  return { digests: [...new Set([sha256Of(bytes), sha256Of(body)])], bytes: () => Promise.resolve(bytes) };
}

async function findInRegistry({ url, pullSecret }: RemoteModule, limits: Limits): Promise<FoundModule> {
  if (pullSecret === "" || pullSecret?.startsWith("kubernetes://") === true)
    throw new Error("its image pull secret is not there, or the control plane may not give it out");
  const image = readImageReference(url.slice("oci://".length));
  const login = loginFor(image.registry, pullSecret ?? (await machineLogins(limits.env)));
  const { digests, module } = await findImage(image, login, limits);
  return { digests, bytes: module };
}
