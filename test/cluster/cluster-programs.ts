import { accessSync, constants } from "node:fs";
import { homedir } from "node:os";
import { join } from "node:path";

/** Paths of the programs a cluster is made of. */
export interface ClusterPrograms {
  readonly etcd: string;
  readonly apiServer: string;
  readonly controllerManager: string;
}

/** Finds what `node tools/setup.mjs cluster` left in the user's cache; a reason where something is missing. */
export function findClusterPrograms(): ClusterPrograms | string {
  const cache = join(process.env.XDG_CACHE_HOME || join(homedir(), ".cache"), "istio-ts");
  const programs = {
    etcd: join(cache, "etcd-3.5.1/etcd"),
    apiServer: join(cache, "kubernetes-1.34.1/kube-apiserver"),
    controllerManager: join(cache, "kubernetes-1.34.1/kube-controller-manager"),
  };
  const missing = Object.values(programs).find((path) => !isExecutable(path));
  return missing === undefined ? programs : `no ${missing}; run \`node tools/setup.mjs cluster\` (needs Go 1.24 or newer)`;
}

/** Why no cluster can be started here, to skip tests with; undefined where one can. */
export function clusterImpossible(): string | undefined {
  if (process.platform !== "linux") return "the cluster of tests runs on Linux";
  const found = findClusterPrograms();
  return typeof found === "string" ? found : undefined;
}

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}
