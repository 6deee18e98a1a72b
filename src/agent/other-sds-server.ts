import type { Clock } from "../base/clock.ts";
import { EdgeError } from "../base/errors.ts";
import type { Log } from "../base/log.ts";
import type { AgentConfig } from "./agent-config.ts";
import { isServed } from "./local-socket.ts";

/** The file name of the agent's own socket: somebody else may have it, but need not. */
const OWN_NAME = "socket";
/** SPIRE's agent may be started at the same time as we are. */
const WAIT_MS = 15_000;
const LOOK_MS = 250;

/**
 * Whether somebody else (SPIRE) serves the workload's certificate. A socket of another name than ours says that somebody does: it is waited for, and without it nothing is started, since
 * the workload would have another identity than it is to have.
 */
export async function hasOtherServer(
  { settings, paths }: Pick<AgentConfig, "settings" | "paths">,
  clock: Pick<Clock, "monotonic" | "sleep">,
  log: Log,
): Promise<boolean> {
  if (settings.identitySocket.includes("/"))
    throw new EdgeError("usage", `WORKLOAD_IDENTITY_SOCKET_FILE: ${JSON.stringify(settings.identitySocket)} is a path`, {
      hint: "it is the name of a file in var/run/secrets/workload-spiffe-uds",
    });
  if (await isServed(paths.sdsSocket)) return true;
  if (settings.identitySocket === OWN_NAME) return false;
  log.info({ socket: paths.sdsSocket }, "waiting for the SDS server that WORKLOAD_IDENTITY_SOCKET_FILE names");
  for (const end = clock.monotonic() + WAIT_MS; clock.monotonic() < end; ) {
    await clock.sleep(LOOK_MS);
    if (await isServed(paths.sdsSocket)) return true;
  }
  throw new EdgeError("not_found", `nobody serves certificates on ${paths.sdsSocket}, which WORKLOAD_IDENTITY_SOCKET_FILE names`, {
    hint: "start the SDS server (SPIRE's agent), or leave the variable out to have the agent serve them",
  });
}
