import { join } from "node:path";
import type { Clock } from "../base/clock.ts";
import { EdgeError } from "../base/errors.ts";
import type { Log } from "../base/log.ts";
import type { LoadedMesh } from "../config/mesh/load-mesh.ts";
import { bundlePem } from "../pki/chain.ts";
import type { ClusterSigning } from "./cluster-signing.ts";
import type { DelegatedCa } from "./delegated-ca.ts";
import { givenCertificate } from "./given-certificate.ts";
import type { OwnCa } from "./own-ca.ts";
import { ownCertificate, type ServerCertificate, serverAddresses, serverNames, signedNames } from "./own-certificate.ts";

/** Who signs what. */
export interface Signing {
  readonly ca: OwnCa | undefined;
  /** Signs for workloads in place of our own CA. */
  readonly delegated: DelegatedCa | undefined;
  readonly cluster: ClusterSigning | undefined;
}

export interface ServerCertificateOptions {
  readonly baseDir: string;
  readonly mesh: LoadedMesh;
  readonly clock: Clock;
  readonly log: Log;
}

/**
 * The control plane's certificate: the one in `etc/certs`, else that of a signer of the cluster where one is named, else of our own CA. Undefined where there is none of
 * them, or not yet. Throws `EdgeError` where one is to be had and cannot.
 */
export async function serverCertificate(options: ServerCertificateOptions, signing: Signing): Promise<ServerCertificate | undefined> {
  const { baseDir, mesh, clock, log } = options;
  const { ca, delegated, cluster } = signing;
  const clientRoots = (): readonly string[] | undefined => clientRootsOf(signing);
  const given = await givenCertificate({ directory: join(baseDir, "etc/certs"), clientRoots, clock, log });
  if (given !== undefined) return given;
  const { podNamespace: namespace, clusterDomain, revision, customHosts, webhookUrl, certProvider } = mesh.settings;
  const names = { namespace, clusterDomain, revision, customHosts, webhookUrl };
  if (cluster?.server !== undefined) return cluster.server({ dnsNames: signedNames(names), clientRoots: () => clientRoots() ?? [] });
  if (delegated !== undefined && cluster === undefined)
    throw new EdgeError(
      "ca_unusable",
      "ca.address leaves signing to another CA, and there is no certificate for this server in etc/certs",
      {
        hint: "put cert-chain.pem, key.pem and root-cert.pem there; the other CA signs for workloads only",
      },
    );
  const authority = ca?.authority;
  if (authority === undefined) return undefined;
  if (certProvider !== "istiod")
    log.warn({ certProvider }, "PILOT_CERT_PROVIDER is neither istiod nor k8s.io/<signer>; istiod's certificate is from its own CA");
  const others = (): readonly string[] => (delegated?.roots() ? [delegated.roots()] : []);
  return ownCertificate({ dnsNames: serverNames(names), addresses: serverAddresses(names), clientRoots: others, authority, clock });
}

/** What clients are verified with; undefined where nothing is signed here. A CA of our own counts besides another one: workloads may have changed from it. */
function clientRootsOf({ ca, delegated }: Signing): readonly string[] | undefined {
  const material = ca?.authority?.material;
  const own = material === undefined ? [] : [bundlePem(material.roots), ...material.intermediates.map(({ pem }) => pem)];
  const others = delegated?.roots() ? [delegated.roots()] : [];
  return own.length + others.length === 0 ? undefined : [...others, ...own];
}
