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
  certProvider: {
    env: "PILOT_CERT_PROVIDER",
    type: "string",
    default: "istiod",
    restart: true,
    about:
      "Who signs istiod's own certificate: `istiod` its CA. Signers of Kubernetes are not built yet; what is given in `etc/certs` counts before any.",
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
