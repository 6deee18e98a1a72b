import { readFile } from "node:fs/promises";
import { isIP } from "node:net";
import { join } from "node:path";
import { cidrContains, parseCidr, parseIp } from "../../base/address.ts";

/** What a registry is shown; undefined where nobody is known there. */
export interface Login {
  readonly user: string;
  readonly password: string;
}

/** What Docker's `config.json` says of a registry. Throws a sentence, without content, where it cannot be read. */
export function loginFor(registry: string, config: string): Login | undefined {
  let auths: Readonly<Record<string, unknown>> = {};
  try {
    const { auths: found } = JSON.parse(config) as { readonly auths?: unknown };
    if (typeof found === "object" && found !== null) auths = found as Readonly<Record<string, unknown>>;
  } catch {
    throw new Error("the image pull secret is not the JSON that Docker writes");
  }
  const wanted = aliasesOf(registry);
  for (const [place, entry] of Object.entries(auths))
    if (wanted.includes(place.replace(/^https?:\/\//, "").replace(/\/(v1|v2)?\/?$/, ""))) return loginOf(Object(entry) as Entry);
  return undefined;
}

/** Docker Hub goes by several names. */
const aliasesOf = (registry: string): readonly string[] =>
  registry === "registry-1.docker.io" ? [registry, "index.docker.io", "docker.io"] : [registry];

type Entry = Readonly<Record<string, unknown>>;

function loginOf({ auth, username, password }: Entry): Login | undefined {
  if (typeof username === "string" && typeof password === "string") return { user: username, password };
  if (typeof auth !== "string") return undefined;
  const [, user, secret] = /^([^:]*):(.*)$/s.exec(Buffer.from(auth, "base64").toString("utf8")) ?? [];
  return user === undefined || secret === undefined ? undefined : { user, password: secret };
}

/** The machine's own `config.json`, for images that name no secret; empty where there is none. */
export async function machineLogins(env: Readonly<Record<string, string | undefined>>): Promise<string> {
  const directory = env.DOCKER_CONFIG || (env.HOME === undefined ? undefined : join(env.HOME, ".docker"));
  const text = directory === undefined ? "" : await readFile(join(directory, "config.json"), "utf8").catch(() => "");
  return text.trim() === "" ? "{}" : text;
}

/** The header that shows a login. */
export const basic = ({ user, password }: Login): string => `Basic ${Buffer.from(`${user}:${password}`).toString("base64")}`;

/** What a registry asks for in `www-authenticate`. */
export type Challenge =
  | { readonly kind: "basic" }
  | { readonly kind: "bearer"; readonly realm: URL; readonly service: string; readonly scope: string };

const PRIVATE = ["10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "fc00::/7"].flatMap((range) => parseCidr(range) ?? []);

/**
 * Reads a challenge. Where tokens are fetched is said by the registry, so it must not lead where the registry itself could not be: no other scheme
 * than https (http where the registry is called that way), and no private address other than the registry's own (Istio's bulletin 2026-001).
 */
export function readChallenge(header: string | undefined, registry: URL): Challenge {
  if (header === undefined) throw new Error(`${registry.host} refuses to give the image and does not say what it wants`);
  if (/^basic\b/i.test(header)) return { kind: "basic" };
  const values = new Map([...header.matchAll(/([a-z]+)="([^"]*)"/gi)].map(([, name = "", value = ""]) => [name.toLowerCase(), value]));
  const realm = values.get("realm") ?? "";
  if (!/^bearer\b/i.test(header) || !URL.canParse(realm)) throw new Error(`${registry.host} wants a login of an unknown kind`);
  const url = new URL(realm);
  const host = url.hostname.replace(/^\[(.*)\]$/, "$1");
  const ip = isIP(host) === 0 ? undefined : parseIp(host);
  const isForeignPrivate = url.hostname !== registry.hostname && ip !== undefined && PRIVATE.some((range) => cidrContains(range, ip));
  if ((url.protocol !== "https:" && url.protocol !== registry.protocol) || isForeignPrivate)
    throw new Error(`${registry.host} sends to ${url.host} for a token, which is not called`);
  return { kind: "bearer", realm: url, service: values.get("service") ?? "", scope: values.get("scope") ?? "" };
}
