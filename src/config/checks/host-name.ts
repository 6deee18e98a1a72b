import { quote } from "../../base/quote.ts";

const LONGEST_NAME = 255;
const LONGEST_LABEL = 63;
const LABEL = /^[a-zA-Z0-9](?:[-a-zA-Z0-9]*[a-zA-Z0-9])?$/;
const NUMBER = /^[+-]?\d+$/;
const GENERATED_SNI_PREFIX = "outbound_.";

/** A DNS label as Istio takes it: upper case is allowed, since DNS does not tell the cases apart. */
export const isDnsLabel = (text: string): boolean => text.length <= LONGEST_LABEL && LABEL.test(text);

/** What is wrong with a fully qualified name, or a short one without dots. A final dot is allowed. */
export const fqdnFault = (name: string): string | undefined => sizeFault(name) ?? labelsFault(name);

/** What is wrong with a name whose first label may be `*`, `*-x` or `*x`; `*` alone takes every host. */
export function wildcardDomainFault(name: string): string | undefined {
  const size = sizeFault(name);
  if (size !== undefined || name === "*") return size;
  const dot = name.indexOf(".");
  const first = dot === -1 ? name : name.slice(0, dot);
  if (!isWildcardLabel(first)) return `${quote(name)} is not a host name: its part ${quote(first)} is not a DNS label or wildcard`;
  return dot === -1 ? undefined : labelsFault(name.slice(dot + 1));
}

/** `*` must be the whole first label where Envoy or the mesh can match whole labels only. */
export function partialWildcardFault(name: string): string | undefined {
  const partial = name.includes("*") && name !== "*" && !name.startsWith("*.");
  return partial ? `${quote(name)} uses * for a part of a label; only a whole first label may be a wildcard` : undefined;
}

/**
 * A host of a VirtualService that is bound to gateways. Among SNI hosts Istio's own generated names
 * (`outbound_.80_._.reviews.default.svc.cluster.local`) are allowed too: multi-network gateways route by them.
 */
export function gatewayDomainFault(name: string, isSni: boolean): string | undefined {
  if (!isSni || !name.startsWith(GENERATED_SNI_PREFIX)) return wildcardDomainFault(name);
  const size = sizeFault(name);
  if (size !== undefined) return size;
  const [, port = "", subset = "", ...host] = name.split("_.");
  if (!/^\d+$/.test(port)) return `${quote(name)} must have the form outbound_.<port>_.<subset>_.<host>: ${quote(port)} is not a port`;
  if (subset !== "" && !isDnsLabel(subset)) return `${quote(name)} names the subset ${quote(subset)}, which is not a DNS label`;
  return fqdnFault(host.join("_."));
}

/** A SPIFFE trust domain: a host name, which may end with a dot. */
export function trustDomainFault(name: string): string | undefined {
  if (name === "") return "a trust domain must not be empty";
  const labels = (name.endsWith(".") ? name.slice(0, -1) : name).split(".");
  const wrong = labels.find((label) => !isDnsLabel(label));
  return wrong === undefined ? undefined : `${quote(name)} is not a trust domain: its part ${quote(wrong)} is not a DNS label`;
}

function isWildcardLabel(label: string): boolean {
  if (label === "*") return true;
  const rest = label.startsWith("*-") ? label.slice(2) : label.startsWith("*") ? label.slice(1) : label;
  return isDnsLabel(rest);
}

function sizeFault(name: string): string | undefined {
  if (name === "") return "a host name must not be empty";
  return name.length > LONGEST_NAME ? `${quote(name)} is longer than ${LONGEST_NAME} characters` : undefined;
}

function labelsFault(name: string): string | undefined {
  const labels = name.split(".");
  const top = labels.at(-1) ?? "";
  if (NUMBER.test(top)) return `${quote(name)} is not a host name: its last part is a number`;
  for (const [index, label] of labels.entries()) {
    if (label === "" && index === labels.length - 1 && index > 0) continue;
    if (!isDnsLabel(label)) return `${quote(name)} is not a host name: its part ${quote(label)} is not a DNS label`;
  }
  return undefined;
}
