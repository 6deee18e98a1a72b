import type { Clock } from "../base/clock.ts";
import { messageOf } from "../base/errors.ts";
import type { Log } from "../base/log.ts";
import { Secret } from "../base/secret.ts";
import { type Entries, filled, pairIn, rootsIn } from "./credential-entries.ts";
import {
  type CredentialRef,
  type CredentialSource,
  type KeyPair,
  type Looked,
  type TrustedRoots,
  withoutSuffix,
} from "./credential-source.ts";
import type { VaultClient, VaultSecret } from "./vault-client.ts";

export interface VaultCredentialsOptions {
  readonly client: VaultClient;
  /** Where a credential lies below the mount: `{namespace}` and `{name}` stand for its own. */
  readonly path: string;
  /** How often what is in use is asked for again. */
  readonly refreshMs: number;
  readonly clock: Clock;
  readonly log: Log;
  /** A credential is there, is another, or is gone: proxies are to be told. */
  changed(): void;
}

/** Credentials in a Vault server. */
export interface VaultCredentials extends CredentialSource {
  /** Why some of what is served may be out of date; undefined where all is fresh. */
  readonly fault: string | undefined;
  stop(): void;
}

/** Names followed at a time. Beyond it one that Vault has nothing for makes room; what it has is never forgotten for what somebody asks. */
const MOST_NAMES = 2_000;
/** Questions under way at a time. */
const AT_ONCE = 8;

interface Known {
  readonly path: string;
  /** Undefined: there is none. Before the first answer it is not known. */
  secret: VaultSecret | undefined;
  answered: boolean;
  pair: Looked<KeyPair> | undefined;
  roots: Looked<TrustedRoots> | undefined;
  /** Why the last question had no answer: what is here is the last good. */
  stale: string | undefined;
}

/**
 * Serves from memory what Vault said last and asks again in the background, so that neither a slow Vault nor one that is away holds up a push. What it
 * cannot be asked for stays as it was, and is told as stale; what it says is gone, is gone.
 */
export function vaultCredentials(options: VaultCredentialsOptions): VaultCredentials {
  const { clock, changed, refreshMs } = options;
  const known = new Map<string, Known>();
  let stopped = false;
  const askAll = async (all: readonly Known[]): Promise<void> => {
    const waiting = [...all];
    let news = false;
    const work = async (): Promise<void> => {
      for (let one = waiting.shift(); one !== undefined && !stopped; one = waiting.shift()) news = (await askOne(one, options)) || news;
    };
    await Promise.all(Array.from({ length: AT_ONCE }, work));
    if (news && !stopped) changed();
  };
  const entryOf = (ref: CredentialRef): Known => {
    const path = pathOf(options.path, ref);
    const found = known.get(path);
    if (found !== undefined) return found;
    const one: Known = { path, secret: undefined, answered: false, pair: undefined, roots: undefined, stale: undefined };
    if (!hasRoom(known)) return { ...one, stale: `more than ${MOST_NAMES} names are asked for already` };
    known.set(path, one);
    void askAll([one]);
    return one;
  };
  const refresh = (): void => {
    cancel = clock.after(refreshMs, () => void askAll([...known.values()]).then(refresh));
  };
  let cancel = (): void => {};
  refresh();
  return {
    keyPair(ref) {
      const one = entryOf(ref);
      one.pair ??= one.secret && pairIn(entriesOf(one.path, one.secret));
      return one.pair ?? absent(one);
    },
    roots({ in: kind, namespace, name }) {
      if (kind !== "Secret") return { is: "absent", reason: "Vault holds no ConfigMaps", objects: [] };
      const apart = entryOf({ namespace, name });
      const one = apart.secret === undefined && withoutSuffix(name) !== name ? entryOf({ namespace, name: withoutSuffix(name) }) : apart;
      one.roots ??= one.secret && rootsIn(entriesOf(one.path, one.secret));
      return one.roots ?? absent(one);
    },
    get fault() {
      return [...known.values()].find(({ stale }) => stale !== undefined)?.stale;
    },
    stop() {
      stopped = true;
      cancel();
    },
  };
}

/** Asks once; tells whether the answer is another than before. */
async function askOne(one: Known, { client, log }: VaultCredentialsOptions): Promise<boolean> {
  try {
    const secret = await client.read(one.path);
    if (one.stale !== undefined) log.info({ secret: one.path }, "Vault answers again");
    const news = !one.answered || secret?.version !== one.secret?.version;
    one.stale = undefined;
    one.answered = true;
    if (news) Object.assign(one, { secret, pair: undefined, roots: undefined });
    return news;
  } catch (error) {
    const reason = messageOf(error);
    if (one.stale === undefined) log.warn({ secret: one.path, reason }, "Vault gave no answer; what it said last stays in force");
    one.stale = reason;
    return false;
  }
}

function hasRoom(known: Map<string, Known>): boolean {
  if (known.size < MOST_NAMES) return true;
  const vain = [...known.values()].find(({ answered, secret }) => answered && secret === undefined);
  return vain !== undefined && known.delete(vain.path);
}

const pathOf = (template: string, { namespace, name }: CredentialRef): string =>
  template.replaceAll("{namespace}", () => namespace).replaceAll("{name}", () => name);

/** Texts as they are; the one entry that is no text, a staple, is kept in base64. */
function entriesOf(path: string, { values }: VaultSecret): Entries {
  const bytesOf = (name: string): Secret | undefined => {
    const value = values[name];
    if (typeof value !== "string") return undefined;
    return new Secret(Buffer.from(value, name === "tls.ocsp-staple" ? "base64" : "utf8"));
  };
  return { objects: [], title: `the Vault secret ${path}`, get: (name) => filled(bytesOf(name)) };
}

function absent({ path, answered, stale }: Known): Looked<never> {
  const reason = stale ?? (answered ? "there is none" : "it has not answered yet");
  return { is: "absent", reason: `nothing from Vault for ${path}: ${reason}`, objects: [] };
}

/** Asks the sources in order: what the first does not have is asked of the next. */
export function firstOf(...sources: readonly [CredentialSource, ...CredentialSource[]]): CredentialSource {
  const [first, ...others] = sources;
  const pick = <T>(look: (source: CredentialSource) => Looked<T>): Looked<T> => {
    let looked = look(first);
    for (const source of others) {
      if (looked.is !== "absent") break;
      looked = look(source);
    }
    return looked;
  };
  return { keyPair: (ref) => pick((source) => source.keyPair(ref)), roots: (ref) => pick((source) => source.roots(ref)) };
}
