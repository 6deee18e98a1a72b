import type { Clock } from "../base/clock.ts";
import { EdgeError } from "../base/errors.ts";
import type { Log } from "../base/log.ts";
import type { CertificateApi } from "../ca/certificate-api.ts";
import type { LoadedMesh } from "../config/mesh/load-mesh.ts";
import type { DelegatedCa } from "./delegated-ca.ts";
import type { ServerCertificate } from "./own-certificate.ts";
import { registrationAuthority } from "./registration-authority.ts";
import { signedCertificate } from "./signed-certificate.ts";
import { followSignerRoots } from "./signer-roots.ts";

export interface ClusterSigningOptions {
  readonly baseDir: string;
  readonly mesh: LoadedMesh;
  /** Whether certificates of workloads are given out here. */
  readonly signs: boolean;
  /** Undefined where there is no cluster, or it is only read. */
  readonly api: CertificateApi | undefined;
  readonly clock: Clock;
  readonly log: Log;
  /** A signer has other roots than before. */
  rootsChanged(): void;
}

/** Certificates by signers of the cluster, as far as settings ask for them. */
export interface ClusterSigning {
  /** Signs for workloads; undefined where that is not left to the cluster. */
  readonly workloads: DelegatedCa | undefined;
  /** Gets the control plane its own; undefined where that is not left to the cluster. */
  readonly server: ((called: CalledServer) => Promise<ServerCertificate>) | undefined;
  meshChanged(mesh: LoadedMesh): void;
  stop(): void;
}

/** How the control plane is called, and what it verifies clients with. */
export interface CalledServer {
  readonly dnsNames: readonly string[];
  clientRoots(): readonly string[];
}

const PREFIX = "k8s.io/";

/** Undefined where nothing is left to the cluster. Throws `EdgeError` where something is that cannot be had. */
export async function startClusterSigning(options: ClusterSigningOptions): Promise<ClusterSigning | undefined> {
  const { baseDir, mesh, api, clock, log } = options;
  const { certProvider, externalCa, workloadCertTtlMs } = mesh.settings;
  const signer = certProvider.startsWith(PREFIX) ? certProvider.slice(PREFIX.length) : undefined;
  const forWorkloads = options.signs && externalCa !== "";
  checkSettings(mesh, signer);
  if (signer === undefined && !forWorkloads) return undefined;
  if (api === undefined)
    throw new EdgeError(
      "ca_unusable",
      `${forWorkloads ? "EXTERNAL_CA" : "PILOT_CERT_PROVIDER"} leaves certificates to a signer of Kubernetes, and there is no cluster that istiod may write to`,
      {
        hint: "run in a pod, or with a kubeconfig and `clusterWrites: true` in mesh.yaml",
      },
    );
  const roots = await followSignerRoots({ baseDir, mesh: mesh.mesh, api, clock, log, changed: () => options.rootsChanged() });
  const shared = { api, roots, clock, log };
  return {
    workloads: forWorkloads ? await registrationAuthority({ ...shared, settings: mesh.settings }) : undefined,
    server:
      signer === undefined
        ? undefined
        : (called) => signedCertificate({ ...shared, ...called, signer, ttlMs: workloadCertTtlMs, kept: api.kept }),
    meshChanged: (next) => roots.meshChanged(next.mesh),
    stop: roots.stop,
  };
}

function checkSettings({ settings, mesh }: LoadedMesh, signer: string | undefined): void {
  const { certProvider, externalCa, k8sSigner, certSignerDomain } = settings;
  const wrong =
    certProvider === "kubernetes"
      ? "PILOT_CERT_PROVIDER: kubernetes is what Kubernetes has no signer for any more; name one as k8s.io/<domain>/<name>"
      : signer !== undefined && !/^[^/]+\/.+$/.test(signer)
        ? `PILOT_CERT_PROVIDER: ${certProvider} names no signer; it is k8s.io/<domain>/<name>`
        : externalCa !== "" && k8sSigner === "" && certSignerDomain === ""
          ? "EXTERNAL_CA leaves certificates of workloads to signers of Kubernetes, and neither K8S_SIGNER nor CERT_SIGNER_DOMAIN names one"
          : externalCa !== "" && (mesh.ca?.address ?? "") !== ""
            ? "EXTERNAL_CA and ca.address of mesh.yaml both say who signs; remove one"
            : undefined;
  if (wrong !== undefined) throw new EdgeError("mesh_config_invalid", wrong);
}
