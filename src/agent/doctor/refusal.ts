import { resolve } from "node:path";
import type { Clock } from "../../base/clock.ts";
import { DELTA_METHOD } from "../../wire/grpc-server.ts";
import { GRPC_STATUS } from "../../wire/grpc-status.ts";
import type { AgentConfig } from "../agent-config.ts";
import type { Target } from "../control-plane-address.ts";
import { createDialer } from "../dialer.ts";
import { readEarlierCertificate } from "../identity/certificate-copies.ts";

const PATIENCE_MS = 2_000;
const REFUSALS: readonly number[] = [GRPC_STATUS.UNAUTHENTICATED, GRPC_STATUS.PERMISSION_DENIED];

/**
 * Why the control plane does not take what the workload shows, in its own words; undefined where it does, or says nothing.
 * Nothing is asked of it, so a token that is good for one certificate stays so.
 */
export async function refusalOf(target: Target, { config, clock }: { config: AgentConfig; clock: Clock }): Promise<string | undefined> {
  const { baseDir, settings, env, paths } = config;
  const provisioned = settings.provisionedCerts === "" ? undefined : resolve(baseDir, settings.provisionedCerts);
  const earlier = (await leftIn(paths.certificates, clock)) ?? (await leftIn(provisioned, clock));
  const dialer = createDialer({
    baseDir,
    targets: [target],
    namedRoots: settings.xdsRoots,
    clusterId: env.ISTIO_META_CLUSTER_ID || settings.clusterId,
    credentials: { certificate: () => earlier?.certificate, roots: () => earlier?.roots ?? "" },
    headers: config.headers.xds,
    clock,
  });
  const connection = await dialer.dial().catch(() => undefined);
  if (connection === undefined) return undefined;
  const { channel, headers } = connection;
  return new Promise<string | undefined>((found) => {
    const end = (reason: string | undefined): void => {
      cancel();
      channel.close();
      found(reason);
    };
    const cancel = clock.after(PATIENCE_MS, () => end(undefined));
    channel.open(DELTA_METHOD, headers, {
      taken: () => end(undefined),
      message: () => end(undefined),
      ended: (error) => end(error !== undefined && REFUSALS.includes(error.status) ? error.message : undefined),
    });
  });
}

const leftIn = async (directory: string | undefined, clock: Clock) =>
  directory === undefined ? undefined : readEarlierCertificate(directory, clock);
