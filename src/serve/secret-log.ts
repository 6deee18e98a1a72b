import type { Log } from "../base/log.ts";
import type { WithheldSecret } from "../generate/secrets/secret-provider.ts";

/** Says which secrets proxies ask for in vain, and why. */
export type SecretLog = (secret: WithheldSecret) => void;

const WORDS = {
  refused: "a proxy is not given a secret it asks for: it may not have it",
  absent: "a proxy asks for a secret that is not there; connections that need it are refused until it is",
  broken: "a secret cannot be used; where there was a good one before, that stays in force",
} as const satisfies Record<WithheldSecret["why"], string>;

/** What has been said is remembered up to here: more is only seen where somebody asks for anything that comes to mind. */
const MOST_SAID = 10_000;
/** Names come from the network: their length is bounded, and they cannot begin a line of their own. */
const printable = (name: string): string => name.slice(0, 200).replaceAll(/\p{Cc}/gu, "?");

/** Each secret is spoken of once per namespace and reason: a hundred replicas of a gateway ask for the same, at every push. */
export function createSecretLog(log: Log, count: (why: WithheldSecret["why"]) => void): SecretLog {
  const said = new Set<string>();
  return ({ node, name, why, reason }) => {
    const place = node.slice(node.lastIndexOf("~") + 1);
    const key = `${place} ${name} ${reason}`;
    if (said.has(key) || said.size >= MOST_SAID) return;
    said.add(key);
    count(why);
    log.warn({ node, secret: printable(name), reason }, WORDS[why]);
  };
}
