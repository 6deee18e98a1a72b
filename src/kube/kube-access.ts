import { existsSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { delimiter, join } from "node:path";
import { hostPort } from "../base/address.ts";
import type { Clock } from "../base/clock.ts";
import { type ChosenContext, chooseContext, type KubeConfig, parseKubeConfig, readKubeConfig, textField, unusable } from "./kube-config.ts";
import {
  type KubeCredentials,
  material,
  NO_CREDENTIALS,
  type Rereading,
  rereading,
  tokenFileCredentials,
  userCredentials,
} from "./kube-credentials.ts";

/** A way to an API server, and who we are there. */
export interface KubeAccess {
  /** `https://host:port`, with a path where the API is below one. */
  readonly server: string;
  /** Names for people: of the cluster, and of the context that chose it (`in-cluster` in a pod). */
  readonly cluster: string;
  readonly context: string;
  /** Namespace the context or the pod is in. */
  readonly namespace: string | undefined;
  readonly inPod: boolean;
  /** Roots to trust; undefined means those of the system. */
  readonly ca: Rereading | undefined;
  /** Name the server's certificate must be for, where it is not the host's. */
  readonly serverName: string | undefined;
  /** The server's certificate is not checked at all. */
  readonly insecure: boolean;
  readonly credentials: KubeCredentials;
}

/** What finding a cluster depends on. */
export interface AccessOptions {
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly clock: Clock;
  /** Where a pod finds its service account; tests have it elsewhere. */
  readonly accountDir?: string;
}

const ACCOUNT_DIR = "/var/run/secrets/kubernetes.io/serviceaccount";

/**
 * Finds the cluster: the one this pod runs in, else `$KUBECONFIG` (a list of files) or `$KUBE_CONFIG` with `$KUBE_CONTEXT`, else `~/.kube/config`. A
 * variable that is set ends the search, though its files be absent. Undefined where there is none; throws `EdgeError` for one that cannot be used.
 */
export async function findKubeAccess(options: AccessOptions): Promise<KubeAccess | undefined> {
  const { env, clock } = options;
  const pod = await podAccess(options);
  if (pod !== undefined) return pod;
  const list = env.KUBECONFIG || env.KUBE_CONFIG;
  const paths = list === undefined || list === "" ? homeConfig(env) : list.split(delimiter).filter((path) => path !== "");
  const config = await readKubeConfig(paths);
  if (config === undefined || config.contexts.length === 0) return undefined;
  return accessOf(config, { clock, context: env.KUBE_CONTEXT ?? "", allowExec: true, allowFiles: true });
}

export interface RemoteOptions {
  readonly clock: Clock;
  /** What the kubeconfig is called in messages. */
  readonly title: string;
}

/** The access a kubeconfig gives that came over the network: it may neither run programs nor read files of this machine. */
export const remoteKubeAccess = (text: string, { clock, title }: RemoteOptions): KubeAccess =>
  accessOf(parseKubeConfig(text, title), { clock, context: "", allowExec: false, allowFiles: false });

async function podAccess({ env, clock, accountDir = ACCOUNT_DIR }: AccessOptions): Promise<KubeAccess | undefined> {
  const [host, port] = [env.KUBERNETES_SERVICE_HOST ?? "", env.KUBERNETES_SERVICE_PORT ?? ""];
  const token = join(accountDir, "token");
  if (host === "" || port === "" || !existsSync(token)) return undefined;
  const namespace = await readFile(join(accountDir, "namespace"), "utf8").catch(() => "");
  return {
    server: `https://${hostPort(host, port)}`,
    cluster: env.CLUSTER_ID || "Kubernetes",
    context: "in-cluster",
    namespace: namespace.trim() || undefined,
    inPod: true,
    ca: rereading(join(accountDir, "ca.crt"), clock),
    serverName: undefined,
    insecure: false,
    credentials: tokenFileCredentials(token, clock),
  };
}

function homeConfig(env: AccessOptions["env"]): readonly string[] {
  const home = env.HOME ?? "";
  return home === "" ? [] : [join(home, ".kube/config")];
}

interface UseOptions {
  readonly clock: Clock;
  readonly context: string;
  readonly allowExec: boolean;
  readonly allowFiles: boolean;
}

function accessOf(config: KubeConfig, options: UseOptions): KubeAccess {
  const chosen = chooseContext(config, options.context);
  const { content, dir, name } = chosen.cluster;
  const server = serverOf(chosen);
  if (content["proxy-url"] !== undefined && content["proxy-url"] !== "")
    throw unusable(
      `cluster ${JSON.stringify(name)} is reached through proxy-url, which is not supported`,
      "name an address that can be reached directly",
    );
  const { clock, allowExec, allowFiles } = options;
  return {
    server,
    cluster: name,
    context: chosen.context,
    namespace: chosen.namespace,
    inPod: false,
    ca: material({ content, dir, name: "certificate-authority" }, options),
    serverName: textField(content, "tls-server-name"),
    insecure: content["insecure-skip-tls-verify"] === true,
    credentials:
      chosen.user === undefined ? NO_CREDENTIALS : userCredentials(chosen.user, { clock, allowExec, allowFiles, cluster: content }),
  };
}

function serverOf({ cluster }: ChosenContext): string {
  const text = textField(cluster.content, "server") ?? "";
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url === undefined || !["https:", "http:"].includes(url.protocol))
    throw unusable(`cluster ${JSON.stringify(cluster.name)} has no usable server address: ${JSON.stringify(text)}`);
  return text.replace(/\/+$/, "");
}
