import { quote } from "../../../base/quote.ts";
import type { Operation, Source } from "../../../gen/istio/security/v1beta1/authorization_policy_pb.js";
import { subnetFault } from "../../checks/address.ts";
import type { Place } from "../../checks/place.ts";
import { HTTP_OPERATION, HTTP_SOURCE, TCP_OPERATION, TCP_SOURCE } from "./attributes.ts";
import { pathTemplateFault } from "./path-template.ts";

const SOURCE_LISTS = [...TCP_SOURCE, ...HTTP_SOURCE];
const OPERATION_LISTS = [...TCP_OPERATION, ...HTTP_OPERATION];

/** As many accounts as one list may name. */
export const MOST_ACCOUNTS = 16;

/** Who calls. */
export function checkSource(source: Source | undefined, place: Place): void {
  if (source === undefined || SOURCE_LISTS.every((name) => source[name].length === 0)) {
    place.fault("field.required", "must set something; leave `from` out to mean everybody");
    return;
  }
  noEmptyTexts(source, SOURCE_LISTS, place);
  for (const name of ["ipBlocks", "notIpBlocks", "remoteIpBlocks", "notRemoteIpBlocks"] as const)
    checkEach(source[name], subnetFault, place.in(name));
  for (const name of ["serviceAccounts", "notServiceAccounts"] as const) {
    checkEach(source[name], serviceAccountFault, place.in(name));
    if (source[name].length > MOST_ACCOUNTS) place.in(name).fault("field.invalid", `must have at most ${MOST_ACCOUNTS} elements`);
  }
  for (const name of ["trustDomains", "notTrustDomains"] as const) checkEach(source[name], trustDomainPatternFault, place.in(name));
  const accounts = source.serviceAccounts.length > 0 || source.notServiceAccounts.length > 0;
  const others = [source.principals, source.notPrincipals, source.namespaces, source.notNamespaces].some((list) => list.length > 0);
  if (accounts && others)
    place.in("serviceAccounts").fault("field.conflict", "cannot be combined with principals or namespaces in one source");
}

/** What is called. */
export function checkOperation(operation: Operation | undefined, place: Place): void {
  if (operation === undefined || OPERATION_LISTS.every((name) => operation[name].length === 0)) {
    place.fault("field.required", "must set something; leave `to` out to mean everything");
    return;
  }
  noEmptyTexts(operation, OPERATION_LISTS, place);
  for (const name of ["ports", "notPorts"] as const) checkEach(operation[name], portTextFault, place.in(name));
  for (const name of ["paths", "notPaths"] as const) checkEach(operation[name], pathTemplateFault, place.in(name));
}

/** A port written as text. */
export const portTextFault = (text: string): string | undefined =>
  /^\d+$/.test(text) && Number(text) <= 65_535 ? undefined : `${quote(text)} is not a port`;

function noEmptyTexts<K extends string>(lists: Readonly<Record<K, readonly string[]>>, names: readonly K[], place: Place): void {
  for (const name of names) {
    const index = lists[name].indexOf("");
    if (index !== -1) place.in(name, index).fault("field.invalid", "must not be empty");
  }
}

function checkEach(texts: readonly string[], fault: (text: string) => string | undefined, place: Place): void {
  for (const [index, text] of texts.entries()) if (text !== "") place.in(index).check("field.invalid", fault(text));
}

const LONGEST_ACCOUNT = 320;

/** `account` of the policy's own namespace, or `namespace/account`. */
export function serviceAccountFault(text: string): string | undefined {
  if (text.includes("*")) return `${quote(text)} must name one account, without a wildcard`;
  if (text.length > LONGEST_ACCOUNT) return `must have at most ${LONGEST_ACCOUNT} characters`;
  const parts = text.split("/");
  return parts.length <= 2 && parts.every((part) => part !== "") ? undefined : `${quote(text)} is neither an account nor namespace/account`;
}

/** A whole text, or one with a wildcard at its start or end. */
export function patternFault(text: string): string | undefined {
  const parts = text.split("*");
  if (parts.length > 2) return `${quote(text)} may hold one wildcard`;
  return parts.every((part) => part !== "") && parts.length === 2
    ? `${quote(text)} may hold its wildcard at the start or the end`
    : undefined;
}

const trustDomainPatternFault = (text: string): string | undefined =>
  patternFault(text) ?? (text.includes("/") ? `${quote(text)} is not a trust domain: it must not contain "/"` : undefined);
