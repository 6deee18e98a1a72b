import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { joinKeyPath, readJoinKey } from "../../authn/join-key.ts";
import { DEFAULT_JOIN_MS, issueJoinToken, type JoinRequest, joinFault } from "../../authn/join-token.ts";
import { systemClock } from "../../base/clock.ts";
import { EdgeError } from "../../base/errors.ts";
import { loadMesh } from "../../config/mesh/load-mesh.ts";
import type { JoinAnswer } from "../../debug/api-types.ts";
import { readValue } from "../../settings/read-value.ts";
import { type Arguments, usageError } from "../arguments.ts";
import type { Host } from "../command.ts";
import { baseDirOf, istiodClient } from "../istiod-client.ts";

/** What `--ttl` says, or an hour. */
export function ttlOf(args: Arguments): number {
  const text = args.text("ttl");
  if (text === undefined) return DEFAULT_JOIN_MS;
  const read = readValue({ type: "duration" }, text);
  if ("fault" in read) throw usageError(`--ttl: ${read.fault}`);
  return Number(read.value);
}

/**
 * A token with which one machine joins: from istiod, or, where none answers on this machine, signed with its key. Whoever can read the key could
 * also read the debug token, so nothing is given away.
 */
export async function obtainJoinToken(request: JoinRequest, args: Arguments, host: Host): Promise<JoinAnswer> {
  const fault = joinFault(request);
  if (fault !== undefined) throw usageError(fault);
  const { namespace, serviceAccount, ttlMs } = request;
  try {
    const istiod = await istiodClient(args, host);
    return await istiod.post<JoinAnswer>("/api/workload-token", { namespace, serviceAccount, ttlSeconds: ttlMs / 1_000 });
  } catch (error) {
    const offline = error instanceof EdgeError && error.code === "control_plane_unreachable" && !args.has("istiod");
    const signed = offline ? await signHere(request, host) : undefined;
    if (signed === undefined) throw error;
    host.err(`istiod does not answer; the token is signed with ${joinKeyPath(baseDirOf(host))}\n`);
    return signed;
  }
}

async function signHere(request: JoinRequest, host: Host): Promise<JoinAnswer | undefined> {
  const baseDir = baseDirOf(host);
  const key = await readJoinKey(baseDir).catch(() => undefined);
  if (key === undefined) return undefined;
  const load = await loadMesh(baseDir, host.env);
  return {
    ...issueJoinToken(key.reveal(), request, systemClock.now()),
    roots: await readFile(join(baseDir, "etc/cacerts/root-cert.pem"), "utf8").catch(() => ""),
    trustDomain: load.ok ? load.config.mesh.trustDomain : "cluster.local",
  };
}
