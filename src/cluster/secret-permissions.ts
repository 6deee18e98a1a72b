import type { Clock } from "../base/clock.ts";
import { messageOf } from "../base/errors.ts";
import type { Log } from "../base/log.ts";
import type { KubeClient } from "../kube/kube-client.ts";

/** A service account that wants secrets of its namespace. */
export interface SecretReader {
  readonly namespace: string;
  readonly serviceAccount: string;
}

export interface SecretPermissionsOptions {
  readonly client: Pick<KubeClient, "request">;
  readonly clock: Clock;
  readonly log: Log;
}

interface Known {
  readonly reader: SecretReader;
  /** Undefined until the first answer. */
  allowed: boolean | undefined;
  asking: boolean;
  /** Others needed its room. */
  isForgotten: boolean;
  /** When somebody wanted to know last. */
  wantedAt: number;
}

/** An answer is asked for anew after this long, whether or not anybody wants to know. */
const AGAIN_MS = 60_000;
const RETRY_MS = 2_000;
const MOST_READERS = 10_000;
/** One that nobody wanted to know about for so long may make room for another. */
const GONE_MS = 3_600_000;

/**
 * Which service accounts may list the Secrets of their namespace, as the cluster says (SubjectAccessReview). While the API server cannot be asked, what it
 * said last counts, and before it said anything nobody is given anything. Whenever an answer changes, somebody is told.
 */
export class SecretPermissions {
  readonly #options: SecretPermissionsOptions;
  readonly #known = new Map<string, Known>();
  #changed: () => void = () => {};
  #stopped = false;

  constructor(options: SecretPermissionsOptions) {
    this.#options = options;
  }

  /** Calls back when an answer is another one than before. */
  follow(changed: () => void): void {
    this.#changed = changed;
  }

  /** Undefined until the API server has answered; asking makes it so. */
  mayRead({ namespace, serviceAccount }: SecretReader): boolean | undefined {
    const id = `${namespace}/${serviceAccount}`;
    const known = this.#known.get(id);
    if (known === undefined && !this.#hasRoom()) return false;
    const wantedAt = this.#options.clock.monotonic();
    const entry: Known = known ?? {
      reader: { namespace, serviceAccount },
      allowed: undefined,
      asking: false,
      isForgotten: false,
      wantedAt,
    };
    entry.wantedAt = wantedAt;
    // The one that was wanted last stands last.
    this.#known.delete(id);
    this.#known.set(id, entry);
    if (known === undefined) this.#ask(entry);
    return entry.allowed;
  }

  /** Makes room by the one that was not wanted for longest, where that is long: it has gone, or is asked about anew when it is wanted. */
  #hasRoom(): boolean {
    if (this.#known.size < MOST_READERS) return true;
    const [oldest] = this.#known;
    if (oldest === undefined || this.#options.clock.monotonic() - oldest[1].wantedAt < GONE_MS) return false;
    oldest[1].isForgotten = true;
    return this.#known.delete(oldest[0]);
  }

  stop(): void {
    this.#stopped = true;
  }

  #ask(entry: Known): void {
    if (entry.asking || entry.isForgotten || this.#stopped) return;
    entry.asking = true;
    const { client, log } = this.#options;
    review(client, entry.reader).then(
      (allowed) => {
        const before = entry.allowed;
        entry.allowed = allowed;
        if (before !== allowed && !entry.isForgotten) this.#changed();
        this.#later(entry, AGAIN_MS);
      },
      (error) => {
        log.debug({ ...entry.reader, reason: messageOf(error) }, "the API server cannot be asked who may read secrets");
        this.#later(entry, RETRY_MS);
      },
    );
  }

  #later(entry: Known, ms: number): void {
    entry.asking = false;
    this.#options.clock.after(ms, () => this.#ask(entry));
  }
}

async function review(client: Pick<KubeClient, "request">, { namespace, serviceAccount }: SecretReader): Promise<boolean> {
  const body = {
    apiVersion: "authorization.k8s.io/v1",
    kind: "SubjectAccessReview",
    spec: {
      user: `system:serviceaccount:${namespace}:${serviceAccount}`,
      groups: ["system:serviceaccounts", `system:serviceaccounts:${namespace}`, "system:authenticated"],
      resourceAttributes: { namespace, verb: "list", resource: "secrets" },
    },
  };
  const answer = (await client.request({
    method: "POST",
    path: "/apis/authorization.k8s.io/v1/subjectaccessreviews",
    body,
    repeatable: true,
    timeoutMs: 5_000,
  })) as { readonly status?: { readonly allowed?: boolean } };
  return answer.status?.allowed === true;
}
