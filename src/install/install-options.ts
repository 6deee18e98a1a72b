import { revisionSuffix } from "../webhooks/webhook-configurations.ts";

/** Which control plane is installed, and where. */
export interface InstallOptions {
  readonly namespace: string;
  /** `default`, or the name of one that runs beside it. */
  readonly revision: string;
  /** Image with `istiod` as its program. */
  readonly image: string;
  readonly replicas: number;
}

/** What `deploy/istiod.yaml` installs. */
export const DEFAULT_INSTALL: InstallOptions = {
  namespace: "istio-system",
  revision: "default",
  image: "istio-ts/pilot:latest",
  replicas: 2,
};

/** `istiod`, or `istiod-<revision>`: of the Deployment, the Service, the account and whatever else belongs to one revision. */
export const installName = ({ revision }: Pick<InstallOptions, "revision">): string => `istiod${revisionSuffix(revision)}`;

/** Labels of everything that belongs to a control plane; names and values are Istio's, since tools select by them. */
export const installLabels = ({ revision }: Pick<InstallOptions, "revision">): Readonly<Record<string, string>> => ({
  app: "istiod",
  "app.kubernetes.io/name": "istiod",
  "istio.io/rev": revision,
  "operator.istio.io/component": "Pilot",
});

/** What its Service and its Deployment select pods by: the default revision must not pick up another one beside it. */
export const podSelector = ({ revision }: Pick<InstallOptions, "revision">): Readonly<Record<string, string>> =>
  revisionSuffix(revision) === "" ? { app: "istiod", istio: "pilot" } : { app: "istiod", "istio.io/rev": revision };
