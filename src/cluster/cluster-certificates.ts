import type { Clock } from "../base/clock.ts";
import type { Log } from "../base/log.ts";
import type { CertificateApi, PublishedBundle } from "../ca/certificate-api.ts";
import type { KubeClient } from "../kube/kube-client.ts";
import { SigningRequests } from "./signing-requests.ts";
import { followTrustBundle } from "./trust-bundles.ts";

export interface CertificateApiOptions {
  readonly client: KubeClient;
  readonly kept: string | undefined;
  readonly clock: Clock;
  readonly log: Log;
}

/** The cluster's API for certificates. Nothing is asked or followed before somebody wants something; all ends with the signal. */
export function clusterCertificates({ client, kept, clock, log }: CertificateApiOptions, signal: AbortSignal): CertificateApi {
  const requests = new SigningRequests({ client, clock, log });
  const bundles = new Map<string, PublishedBundle>();
  return {
    kept,
    sign: (order) => requests.sign(order, signal),
    bundle(signer) {
      const found = bundles.get(signer) ?? followTrustBundle({ client, signer, clock, log }, signal);
      bundles.set(signer, found);
      return found;
    },
  };
}
