import { createAllowance } from "../base/allowance.ts";
import type { Clock } from "../base/clock.ts";
import type { Log } from "../base/log.ts";
import type { WithheldSecret } from "../generate/secrets/secret-provider.ts";

/** Says which secrets proxies ask for in vain, and why. */
export type SecretLog = (secret: WithheldSecret) => void;

const WORDS = {
  refused: "a proxy is not given a secret it asks for: it may not have it",
  absent: "a proxy asks for a secret that is not there; connections that need it are refused until it is",
  broken: "a secret cannot be used; where there was a good one before, that stays in force",
} as const satisfies Record<WithheldSecret["why"], string>;

/** What has been said is remembered up to here, the latest of it. */
const MOST_SAID = 10_000;
/** A namespace may name many gateways' secrets at once before they are there. Beyond it somebody makes names up, and is not to be all that is heard of. */
const EACH = { burst: 1_000, perSecond: 0.1 };
const ALL = { burst: 5_000, perSecond: 10 };
const LONGEST_NAME = 200;
const LONGEST_REASON = 500;
/** Names come from the network: their length is bounded, and they cannot begin a line of their own. */
const printable = (name: string): string => name.slice(0, LONGEST_NAME).replaceAll(/\p{Cc}/gu, "?");

/** Each secret is spoken of once per namespace and reason: a hundred replicas of a gateway ask for the same, at every push. */
export function createSecretLog(log: Log, clock: Pick<Clock, "monotonic">, count: (why: WithheldSecret["why"]) => void): SecretLog {
  const said = new Set<string>();
  const allowance = createAllowance({ clock, each: EACH, all: ALL });
  return ({ node, namespace, name, why, reason }) => {
    const secret = printable(name);
    const key = `${namespace} ${secret} ${reason.slice(0, LONGEST_REASON)}`;
    if (said.has(key) || !allowance.take(namespace)) return;
    said.add(key);
    const [oldest] = said;
    if (said.size > MOST_SAID && oldest !== undefined) said.delete(oldest);
    count(why);
    log.warn({ node, secret, reason: reason.slice(0, LONGEST_REASON) }, WORDS[why]);
  };
}
