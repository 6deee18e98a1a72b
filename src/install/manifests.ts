import { dump } from "js-yaml";
import { customResourceDefinitions } from "../config/crd/custom-resource-definition.ts";
import type { KubeObject } from "../kube/resource-type.ts";
import { accessObjects } from "./access.ts";
import { exposedIstiod } from "./exposed-istiod.ts";
import { DEFAULT_INSTALL, type InstallOptions } from "./install-options.ts";
import { olderServices } from "./older-services.ts";
import { EXAMPLE_SIGNER, signerAccess } from "./signer-access.ts";
import { trustBundleAccess } from "./trust-bundle-access.ts";
import { workloadObjects } from "./workload.ts";

/** A file below `deploy/`: plain objects, no templates, so that kubectl and kustomize take it as it is. */
export interface Manifest {
  readonly file: string;
  text(): string;
}

/** What one control plane consists of, without the namespace and the kinds that several share. */
export const istiodObjects = (options: InstallOptions): readonly KubeObject[] => [...accessObjects(options), ...workloadObjects(options)];

/** All files below `deploy/` that are made from code. */
export const MANIFESTS: readonly Manifest[] = [
  {
    file: "istiod.yaml",
    text: () =>
      yamlOf(
        "The control plane in a cluster: kubectl apply -f deploy/istiod.yaml. Webhooks, the CA and its roots are made by istiod itself.",
        [
          { apiVersion: "v1", kind: "Namespace", metadata: { name: DEFAULT_INSTALL.namespace } },
          ...customResourceDefinitions(),
          ...istiodObjects(DEFAULT_INSTALL),
        ],
      ),
  },
  {
    file: "compat-services.yaml",
    text: () => yamlOf("Optional: Services under the names that older versions of Istio had.", olderServices(DEFAULT_INSTALL)),
  },
  {
    file: "expose-istiod.yaml",
    text: () =>
      yamlOf(
        "Optional: istiod through an east-west gateway, for machines and clusters outside. The gateway must have the ports 15012 and 15017.",
        exposedIstiod(DEFAULT_INSTALL),
      ),
  },
  {
    file: "kubernetes-signer.yaml",
    text: () =>
      yamlOf(
        `Optional: certificates by signers of the cluster (PILOT_CERT_PROVIDER, EXTERNAL_CA). Put the names of your signers in the place of ${EXAMPLE_SIGNER}.`,
        signerAccess(DEFAULT_INSTALL, [EXAMPLE_SIGNER]),
      ),
  },
  {
    file: "trust-bundle.yaml",
    text: () =>
      yamlOf("Optional: the roots in a ClusterTrustBundle (ENABLE_CLUSTER_TRUST_BUNDLE_API).", trustBundleAccess(DEFAULT_INSTALL)),
  },
];

function yamlOf(about: string, objects: readonly unknown[]): string {
  const documents = objects.map((object) => dump(object, { lineWidth: -1, noRefs: true }));
  return `# ${about}\n# Made from src/install by: node tools/write-docs.ts\n${documents.join("---\n")}`;
}
