import type { Service } from "./service.ts";

/** How requests of one client find back to the endpoint that answered the first of them. */
export type Session =
  | { readonly kind: "cookie"; readonly name: string; readonly path: string }
  | { readonly kind: "header"; readonly name: string };

/** Which labels speak of sessions, and whether proxies look at them (Istio's PILOT_…SESSION… and PILOT_DRAINING_LABEL). */
export interface SessionSettings {
  /** Proxies keep sessions. Where they do not, the labels still say which endpoints are sent. */
  readonly enabled: boolean;
  /** Label of a service: `name` or `name:/path` of a cookie. An empty name of a label switches it off. */
  readonly cookieLabel: string;
  /** Label of a service: name of a header. */
  readonly headerLabel: string;
  /** Label of a workload that takes no new sessions. */
  readonly drainingLabel: string;
}

/** Istio's values. */
export const SESSION_DEFAULTS: SessionSettings = {
  enabled: false,
  cookieLabel: "istio.io/persistent-session",
  headerLabel: "istio.io/persistent-session-header",
  drainingLabel: "istio.io/draining",
};

/** The sessions of a service, as far as proxies keep them. The cookie goes before the header. */
export function sessionOf({ labels }: Pick<Service, "labels">, settings: SessionSettings): Session | undefined {
  if (!settings.enabled) return undefined;
  const cookie = labelled(labels, settings.cookieLabel);
  if (cookie !== "") {
    const colon = cookie.indexOf(":");
    return colon < 0
      ? { kind: "cookie", name: cookie, path: "/" }
      : { kind: "cookie", name: cookie.slice(0, colon), path: cookie.slice(colon + 1) };
  }
  const header = labelled(labels, settings.headerLabel);
  return header === "" ? undefined : { kind: "header", name: header };
}

/** Whether a service has sessions that endpoints which take no new ones must still serve. */
export const drainsSessions = ({ labels }: Pick<Service, "labels">, settings: SessionSettings): boolean =>
  labelled(labels, settings.cookieLabel) !== "" || labelled(labels, settings.headerLabel) !== "";

/** Whether a workload says that it takes no new sessions. */
export const saysDraining = (labels: Readonly<Record<string, string>>, settings: SessionSettings): boolean =>
  labelled(labels, settings.drainingLabel) !== "";

const labelled = (labels: Readonly<Record<string, string>>, name: string): string => (name === "" ? "" : (labels[name] ?? ""));
