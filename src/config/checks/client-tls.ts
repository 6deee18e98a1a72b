import { quote } from "../../base/quote.ts";
import { type ClientTLSSettings, ClientTLSSettings_TLSmode as Mode } from "../../gen/istio/networking/v1alpha3/destination_rule_pb.js";
import type { Place } from "./place.ts";

/** No host name is longer, and Envoy sends no longer one. */
const LONGEST_NAME = 255;

const CONFIG_MAP = "configmap://";

/** TLS towards a destination, of an object of a namespace. Certificates come by credential or by path, never both. */
export function checkClientTls(tls: ClientTLSSettings, namespace: string, place: Place): void {
  place.in("credentialName").check("field.invalid", configMapFault(tls.credentialName, namespace));
  if (tls.insecureSkipVerify === true) checkSkipVerify(tls, place);
  if (Buffer.byteLength(tls.sni) > LONGEST_NAME) place.in("sni").fault("field.invalid", `must be at most ${LONGEST_NAME} bytes long`);
  if (tls.sni.includes("\0")) place.in("sni").fault("field.invalid", "must not hold a zero byte");
  const byCredential = tls.credentialName !== "" && (tls.mode === Mode.SIMPLE || tls.mode === Mode.MUTUAL);
  if (byCredential) {
    for (const name of ["clientCertificate", "privateKey", "caCertificates", "caCrl"] as const) {
      if (tls[name] !== "") place.in(name).fault("field.conflict", "cannot be combined with credentialName");
    }
  } else if (tls.mode === Mode.MUTUAL) {
    for (const name of ["clientCertificate", "privateKey"] as const)
      if (tls[name] === "") place.in(name).fault("field.required", "mode MUTUAL needs it");
  }
}

/** A ConfigMap is named with its namespace, which is the object's own. */
function configMapFault(credential: string, namespace: string): string | undefined {
  if (!credential.startsWith(CONFIG_MAP)) return undefined;
  const [home = "", name = ""] = credential.slice(CONFIG_MAP.length).split("/");
  if (home === "" || name === "") return `${quote(credential)} must have the form configmap://<namespace>/<name>`;
  return home === namespace ? undefined : `${quote(credential)} is in another namespace than the object`;
}

/** Settings for verifying a server contradict not verifying it. A credential may hold just the client's own certificate in mode MUTUAL. */
function checkSkipVerify(tls: ClientTLSSettings, place: Place): void {
  if (tls.mode !== Mode.SIMPLE && tls.mode !== Mode.MUTUAL) return;
  const conflict = "cannot be combined with insecureSkipVerify";
  if (tls.caCertificates !== "") place.in("caCertificates").fault("field.conflict", conflict);
  if (tls.subjectAltNames.length > 0) place.in("subjectAltNames").fault("field.conflict", conflict);
  if (tls.mode === Mode.SIMPLE && tls.credentialName !== "") place.in("credentialName").fault("field.conflict", conflict);
}
