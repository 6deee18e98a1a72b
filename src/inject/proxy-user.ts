import { findContainer, findProxy, INIT_CONTAINER, type Pod, PROXY_CONTAINER, VALIDATION_CONTAINER } from "./pod.ts";

/** The user Istio's proxies run as, by whom interception knows their traffic. */
export const PROXY_USER = { uid: 1337, gid: 1337 };

/**
 * User and group of the proxy. OpenShift gives each namespace ranges of its own; the proxy takes the last of them, which no container of a user has
 * unless asked, so that its traffic can be told from the application's.
 */
export function proxyUser(namespaceAnnotations: Readonly<Record<string, string>> | undefined): {
  readonly uid: number;
  readonly gid: number;
} {
  const uids = namespaceAnnotations?.["openshift.io/sa.scc.uid-range"];
  const groups = namespaceAnnotations?.["openshift.io/sa.scc.supplemental-groups"] ?? uids;
  return { uid: lastOf(uids) ?? PROXY_USER.uid, gid: lastOf(groups?.split(",")[0]) ?? PROXY_USER.gid };
}

/** The last number of `start/size` or `start-end`. */
function lastOf(block: string | undefined): number | undefined {
  const [, start = "", mark, second = ""] = /^(\d{1,10})([/-])(\d{1,10})$/.exec(block ?? "") ?? [];
  if (start === "") return undefined;
  return mark === "/" ? Number(start) + Number(second) - 1 : Number(second);
}

/** Drops the user that OpenShift gave all containers alike: the proxy must have one of its own. Changes the pod. */
export function forgetSharedUser(pod: Pod): void {
  const proxy = findProxy(pod);
  const security = proxy?.securityContext;
  if (security?.runAsUser === undefined) return;
  const isOurs = (name: string): boolean => [PROXY_CONTAINER, INIT_CONTAINER, VALIDATION_CONTAINER].includes(name);
  const all = [...(pod.spec.containers ?? []), ...(pod.spec.initContainers ?? [])];
  if (!all.some(({ name, securityContext }) => !isOurs(name) && securityContext?.runAsUser === security.runAsUser)) return;
  delete security.runAsUser;
  delete security.runAsGroup;
}

/**
 * A user who gives the proxy another uid means interception to know it: its traffic is told from the application's by uid. Under TPROXY the proxy
 * stays root. Changes the pod.
 */
export function adjustInterceptionUser(pod: Pod, original: Pod, isTproxy: boolean): void {
  const wanted = findProxy(original)?.securityContext;
  const { runAsUser, runAsGroup } = wanted ?? {};
  if (typeof runAsUser !== "number" && typeof runAsGroup !== "number") return;
  const init = findContainer(pod.spec.initContainers, INIT_CONTAINER) ?? findContainer(pod.spec.initContainers, VALIDATION_CONTAINER);
  if (init === undefined) return;
  const proxy = findProxy(pod);
  if (isTproxy && typeof runAsUser === "number" && proxy !== undefined) proxy.securityContext = { ...proxy.securityContext, runAsUser: 0 };
  if (!isTproxy && init.name === VALIDATION_CONTAINER)
    init.securityContext = {
      ...init.securityContext,
      ...(typeof runAsUser === "number" && { runAsUser }),
      ...(typeof runAsGroup === "number" && { runAsGroup }),
    };
  const at = init.args?.indexOf("-u") ?? -1;
  if (init.args === undefined || at === -1 || typeof runAsUser !== "number" || runAsUser === 0) return;
  init.args = init.args.with(at + 1, String(runAsUser));
}
