import { INJECT_SETTINGS } from "./inject-table.ts";
import type { SettingDef } from "./setting-def.ts";

/** Which cluster, and which control plane in it. Part of the table of settings. */
export const KUBERNETES_SETTINGS = {
  ...INJECT_SETTINGS,
  revision: {
    env: "REVISION",
    type: "string",
    default: "",
    restart: true,
    about:
      "Revision of this control plane: objects labelled `istio.io/rev` for another one do not count; its MeshConfig is the ConfigMap `istio-<revision>`.",
  },
  sharedMeshConfig: {
    env: "SHARED_MESH_CONFIG",
    type: "string",
    default: "",
    restart: true,
    about: "Name of a further ConfigMap with MeshConfig, which several control planes may share; this one's own stands over it.",
  },
  certProvider: {
    env: "PILOT_CERT_PROVIDER",
    type: "string",
    default: "istiod",
    restart: true,
    about:
      "Who signs istiod's own certificate: `istiod` its CA, `k8s.io/<signer>` that signer of the cluster (CertificateSigningRequest). What is given in `etc/certs` counts before any.",
  },
  externalCa: {
    env: "EXTERNAL_CA",
    type: "choice",
    choices: ["", "ISTIOD_RA_KUBERNETES_API"],
    default: "",
    restart: true,
    about:
      "Who signs certificates of workloads: istiod's CA where it is empty, `ISTIOD_RA_KUBERNETES_API` signers of the cluster (`K8S_SIGNER`, `CERT_SIGNER_DOMAIN`).",
  },
  k8sSigner: {
    env: "K8S_SIGNER",
    type: "string",
    default: "",
    restart: true,
    about: "With `EXTERNAL_CA`: the signer for workloads that name none.",
  },
  certSignerDomain: {
    env: "CERT_SIGNER_DOMAIN",
    type: "string",
    default: "",
    restart: true,
    about:
      "With `EXTERNAL_CA`: what goes before the names of signers that workloads give (`ISTIO_META_CERT_SIGNER`); empty: they may give none.",
  },
  trustBundles: {
    env: "ENABLE_CLUSTER_TRUST_BUNDLE_API",
    type: "bool",
    default: "false",
    restart: true,
    about:
      "Publish the roots in the ClusterTrustBundle `istio.io:istiod-ca:root-cert` instead of a ConfigMap in every namespace; injected pods mount it. Rights: deploy/trust-bundle.yaml.",
  },
  publishRevoked: {
    env: "PILOT_ENABLE_CA_CRL",
    type: "bool",
    default: "true",
    restart: true,
    about:
      "Publish the list of revoked certificates `ca-crl.pem` that is beside the CA in the ConfigMap `istio-ca-crl` of every namespace; injected pods mount it.",
  },
  statusWrites: {
    env: "PILOT_ENABLE_STATUS",
    type: "bool",
    default: "true",
    restart: true,
    own: true,
    about: "Write the status of configuration objects in the cluster: whether they are accepted, and which proxies have them.",
  },
  distributionTracking: {
    env: "PILOT_ENABLE_CONFIG_DISTRIBUTION_TRACKING",
    type: "bool",
    default: "true",
    restart: true,
    own: true,
    about: "Follow which proxies have acknowledged each object: condition `Reconciled` of its status, and /debug/status.",
  },
  statusIntervalMs: {
    env: "PILOT_STATUS_UPDATE_INTERVAL",
    type: "duration",
    default: "500ms",
    restart: true,
    own: true,
    about: "How long changes of statuses are gathered before they are written.",
  },
  statusPerSecond: {
    env: "PILOT_STATUS_QPS",
    type: "int",
    default: "20",
    restart: true,
    own: true,
    about: "Statuses written in a second at the most, over a longer time.",
  },
  statusBurst: {
    env: "PILOT_STATUS_BURST",
    type: "int",
    default: "100",
    restart: true,
    own: true,
    about: "Statuses written at once at the most, after a while without any.",
  },
  statusWorkers: {
    env: "PILOT_STATUS_MAX_WORKERS",
    type: "int",
    default: "100",
    restart: true,
    about: "Statuses that are being written at the same time, at the most.",
  },
  remoteCredentials: {
    env: "PILOT_ENABLE_REMOTE_CREDENTIALS_CONTROLLER",
    type: "bool",
    default: "true",
    restart: true,
    about: "Read Secrets with certificates from other clusters, for gateways there.",
  },
  remoteWorkloadEntries: {
    env: "PILOT_ENABLE_CROSS_CLUSTER_WORKLOAD_ENTRY",
    type: "bool",
    default: "true",
    restart: true,
    about: "Read WorkloadEntries from other clusters.",
  },
  externalIstiod: {
    env: "EXTERNAL_ISTIOD",
    type: "bool",
    default: "false",
    restart: true,
    about:
      "Look after roots and injection webhooks of other clusters too, where the annotation `topology.istio.io/controlPlaneClusters` of their namespace for a control plane names this cluster.",
  },
  tokenAudiences: {
    env: "TOKEN_AUDIENCES",
    type: "string",
    default: "istio-ca",
    restart: true,
    about: "Audiences of which a token of the cluster must name one, separated by commas.",
  },
  kubeconfig: {
    env: "KUBECONFIG",
    type: "string",
    default: "",
    restart: true,
    own: true,
    envOnly: true,
    about:
      "Kubeconfig files, separated by colons, of the cluster to look at from outside of it; empty means KUBE_CONFIG, else ~/.kube/config.",
  },
  kubeConfig: {
    env: "KUBE_CONFIG",
    type: "string",
    default: "",
    restart: true,
    own: true,
    envOnly: true,
    about: "The same, where KUBECONFIG is not set.",
  },
  kubeContext: {
    env: "KUBE_CONTEXT",
    type: "string",
    default: "",
    restart: true,
    own: true,
    envOnly: true,
    about: "Context of the kubeconfig to use; empty means its current one.",
  },
} as const satisfies Record<string, SettingDef>;
