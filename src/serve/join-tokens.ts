import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { ensureJoinKey } from "../authn/join-key.ts";
import { DEFAULT_JOIN_MS, issueJoinToken, type JoinRequest, type JoinToken, joinFault } from "../authn/join-token.ts";
import { joinVerifier } from "../authn/join-verifier.ts";
import type { TokenVerifier } from "../authn/token-verifier.ts";
import { openUsedTokens } from "../authn/used-tokens.ts";
import type { Clock } from "../base/clock.ts";
import type { JoinAnswer } from "../debug/api-types.ts";
import type { HttpRoute } from "../debug/http-route.ts";

/** The tokens with which machines join: issued and believed here. */
export interface JoinTokens {
  readonly verifier: TokenVerifier;
  issue(request: JoinRequest): JoinToken;
}

/** Makes the key at the first start. Throws `EdgeError` where what is on disk cannot be used. */
export async function openJoinTokens(baseDir: string, clock: Clock): Promise<JoinTokens> {
  const key = await ensureJoinKey(baseDir);
  const used = await openUsedTokens(join(baseDir, "var/lib/istio/used-join-tokens.json"), clock);
  return {
    verifier: joinVerifier({ key, used, clock }),
    issue: (request) => issueJoinToken(key.reveal(), request, clock.now()),
  };
}

export interface JoinRouteOptions {
  readonly baseDir: string;
  /** Undefined where nothing is signed here. */
  readonly tokens: JoinTokens | undefined;
  /** Roots of the mesh, in PEM. */
  roots(): string;
  trustDomain(): string;
}

/** `POST /api/workload-token`, for those who hold the debug token. */
export function joinTokenRoute({ baseDir, tokens, roots, trustDomain }: JoinRouteOptions): HttpRoute {
  return {
    path: "/api/workload-token",
    method: "POST",
    open: false,
    about: "issues a token with which one machine joins: {namespace, serviceAccount, ttlSeconds}",
    async answer(_query, body) {
      if (tokens === undefined) return { status: 409, body: { error: "this control plane signs no certificates, so nobody can join it" } };
      const request = requestOf(body);
      if (typeof request === "string") return { status: 400, body: { error: request } };
      const answer: JoinAnswer = { ...tokens.issue(request), roots: await rootsFor(baseDir, roots()), trustDomain: trustDomain() };
      return { status: 200, body: answer };
    },
  };
}

/** With these a machine verifies us: the mesh's, and those of a certificate that another CA gave us. */
async function rootsFor(baseDir: string, roots: string): Promise<string> {
  const given = await readFile(join(baseDir, "etc/certs/root-cert.pem"), "utf8").catch(() => "");
  return given === "" || roots.includes(given.trim()) ? roots : `${roots}${given}`;
}

function requestOf(body: unknown): JoinRequest | string {
  if (typeof body !== "object" || body === null) return "the body must be a JSON object";
  const { namespace, serviceAccount, ttlSeconds = DEFAULT_JOIN_MS / 1_000 } = body as Readonly<Record<string, unknown>>;
  if (typeof namespace !== "string" || typeof serviceAccount !== "string" || typeof ttlSeconds !== "number")
    return "namespace and serviceAccount must be texts, ttlSeconds a number";
  const request = { namespace, serviceAccount, ttlMs: ttlSeconds * 1_000 };
  return joinFault(request) ?? request;
}
