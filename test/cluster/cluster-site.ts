import { join } from "node:path";
import { freePort } from "../support/ports.ts";
import { type ClusterFiles, writeClusterFiles, writeKubeconfig } from "./cluster-files.ts";

/** Where the parts of one cluster are. */
export interface Site {
  readonly dir: string;
  /** Where pods reach the API server, if they do. */
  readonly address: string | undefined;
  readonly port: number;
  readonly url: string;
  readonly etcdPort: number;
  readonly peerPort: number;
  readonly managerPort: number;
  readonly serviceCidr: string;
  readonly files: ClusterFiles;
  readonly kubeconfig: string;
}

/** What a cluster's network decides. */
export interface Reach {
  /** Addresses of Services; two ranges separated by a comma for both families. */
  readonly serviceCidr?: string;
  /** Where pods reach the API server; only this machine does where none is given. */
  readonly address?: string;
}

/** Finds ports and writes files. */
export async function prepareSite(dir: string, { serviceCidr = "10.96.0.0/16", address }: Reach): Promise<Site> {
  const [port, etcdPort, peerPort, managerPort] = [await freePort(), await freePort(), await freePort(), await freePort()];
  const files = await writeClusterFiles(dir, ["127.0.0.1", firstService(serviceCidr), ...(address === undefined ? [] : [address])]);
  const url = `https://127.0.0.1:${port}`;
  const kubeconfig = await writeKubeconfig(join(dir, "admin.kubeconfig"), { url, ca: files.ca, token: files.adminToken });
  return { dir, address, port, url, etcdPort, peerPort, managerPort, serviceCidr, files, kubeconfig };
}

/** The API server is itself the first Service of the range. */
function firstService(cidr: string): string {
  return cidr.replace(/0\/.*$/, "1");
}

/** Flags of etcd. Nothing here outlives its test, so nothing is flushed to disk. */
export function etcdFlags({ dir, etcdPort, peerPort }: Site): readonly string[] {
  const [client, peer] = [`http://127.0.0.1:${etcdPort}`, `http://127.0.0.1:${peerPort}`];
  return [
    ...[`--data-dir=${join(dir, "etcd")}`, "--unsafe-no-fsync", "--log-level=warn"],
    ...[`--listen-client-urls=${client}`, `--advertise-client-urls=${client}`],
    ...[`--listen-peer-urls=${peer}`, `--initial-advertise-peer-urls=${peer}`, `--initial-cluster=default=${peer}`],
  ];
}

/** Flags of kube-apiserver. Where nobody but this machine reaches it, the Service `kubernetes` gets an address that stands for none: loopback may not be one. */
export function apiServerFlags({ files, port, address, etcdPort, serviceCidr }: Site): readonly string[] {
  const { paths } = files;
  return [
    ...[`--etcd-servers=http://127.0.0.1:${etcdPort}`, "--etcd-compaction-interval=0"],
    ...[`--secure-port=${port}`, `--bind-address=${address === undefined ? "127.0.0.1" : "0.0.0.0"}`],
    `--advertise-address=${address ?? "192.0.2.1"}`,
    ...[`--tls-cert-file=${paths.serverCert}`, `--tls-private-key-file=${paths.serverKey}`, `--client-ca-file=${paths.ca}`],
    ...[`--token-auth-file=${paths.tokens}`, "--authorization-mode=Node,RBAC", "--allow-privileged=true"],
    "--service-account-issuer=https://kubernetes.default.svc.cluster.local",
    `--service-account-key-file=${paths.serviceAccountPublicKey}`,
    `--service-account-signing-key-file=${paths.serviceAccountKey}`,
    `--service-cluster-ip-range=${serviceCidr}`,
    ...["--feature-gates=ClusterTrustBundle=true,ClusterTrustBundleProjection=true"],
    "--runtime-config=certificates.k8s.io/v1beta1/clustertrustbundles=true",
  ];
}

/** What a cluster without cloud, disks and kubelets needs. */
const CONTROLLERS = [
  ...["deployment-controller", "replicaset-controller", "statefulset-controller", "daemonset-controller", "job-controller"],
  ...["endpoints-controller", "endpointslice-controller", "endpointslice-mirroring-controller"],
  ...["serviceaccount-controller", "serviceaccount-token-controller", "root-ca-certificate-publisher-controller"],
  ...["namespace-controller", "garbage-collector-controller", "clusterrole-aggregation-controller", "disruption-controller"],
];

/** Flags of kube-controller-manager. */
export function managerFlags({ kubeconfig, files, managerPort }: Site): readonly string[] {
  return [
    ...[`--kubeconfig=${kubeconfig}`, "--leader-elect=false", `--controllers=${CONTROLLERS.join()}`],
    ...["--bind-address=127.0.0.1", `--secure-port=${managerPort}`],
    ...[`--root-ca-file=${files.paths.ca}`, `--service-account-private-key-file=${files.paths.serviceAccountKey}`],
    ...["--kube-api-qps=500", "--kube-api-burst=1000", "--min-resync-period=10m"],
  ];
}
