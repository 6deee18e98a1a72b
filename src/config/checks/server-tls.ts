import { ServerTLSSettings_TLSmode as Mode, type ServerTLSSettings } from "../../gen/istio/networking/v1alpha3/shared_pb.js";
import type { Place } from "./place.ts";
import { quote } from "./quote.ts";

/** Cipher suites for TLS 1.2 and below that Envoy's BoringSSL can be told to use. */
const CIPHER_SUITES: ReadonlySet<string> = new Set([
  "ECDHE-ECDSA-AES128-GCM-SHA256",
  "ECDHE-RSA-AES128-GCM-SHA256",
  "ECDHE-ECDSA-AES256-GCM-SHA384",
  "ECDHE-RSA-AES256-GCM-SHA384",
  "ECDHE-ECDSA-CHACHA20-POLY1305",
  "ECDHE-RSA-CHACHA20-POLY1305",
  "ECDHE-PSK-CHACHA20-POLY1305",
  "ECDHE-ECDSA-AES128-SHA",
  "ECDHE-RSA-AES128-SHA",
  "ECDHE-PSK-AES128-CBC-SHA",
  "ECDHE-ECDSA-AES256-SHA",
  "ECDHE-RSA-AES256-SHA",
  "ECDHE-PSK-AES256-CBC-SHA",
  "AES128-GCM-SHA256",
  "PSK-AES128-CBC-SHA",
  "AES256-GCM-SHA384",
  "AES128-SHA",
  "AES256-SHA",
  "PSK-AES256-CBC-SHA",
  "DES-CBC3-SHA",
  "ECDHE-RSA-AES128-SHA256",
]);

/** Envoy serves one certificate per kind of key. */
const MOST_CERTIFICATES = 2;

/** TLS of a Gateway's server or of a Sidecar's ingress listener. */
export function checkServerTls(tls: ServerTLSSettings, place: Place): void {
  checkCipherSuites(tls.cipherSuites, place.in("cipherSuites"));
  switch (tls.mode) {
    case Mode.PASSTHROUGH:
    case Mode.AUTO_PASSTHROUGH:
      if (certificateFields(tls).length > 0)
        place.fault("field.ineffective", `mode ${Mode[tls.mode]} ends no TLS here, so the certificates are not used`);
      return;
    case Mode.ISTIO_MUTUAL:
      for (const name of certificateFields(tls)) place.in(name).fault("field.conflict", "ISTIO_MUTUAL uses the certificates of the mesh");
      return;
    default:
      checkCertificates(tls, place);
  }
}

function checkCertificates(tls: ServerTLSSettings, place: Place): void {
  for (const name of ["credentialNames", "tlsCertificates"] as const) {
    if (tls[name].length > MOST_CERTIFICATES)
      place.in(name).fault("field.ineffective", `clients are shown ${MOST_CERTIFICATES} at most: one RSA and one ECDSA certificate`);
  }
  const pair = tls.serverCertificate !== "" && tls.privateKey !== "";
  const sources = [tls.credentialName !== "", tls.credentialNames.length > 0, pair, tls.tlsCertificates.length > 0];
  if (sources.filter(Boolean).length > 1) {
    place.fault(
      "field.conflict",
      "give the certificates one way: credentialName, credentialNames, serverCertificate with privateKey, or tlsCertificates",
    );
    return;
  }
  if (tls.credentialName !== "" || tls.credentialNames.length > 0) return;
  const mode = Mode[tls.mode];
  if (tls.mode === Mode.SIMPLE && tls.caCrl !== "")
    place.in("caCrl").fault("field.conflict", "SIMPLE verifies no client, so it uses no revocation list");
  if (tls.mode !== Mode.SIMPLE && tls.caCertificates === "" && tls.caCertCredentialName === "") {
    place.in("caCertificates").fault("field.required", `mode ${mode} needs the certificates of the client CA`);
  }
  if (tls.tlsCertificates.length === 0) checkPair(tls, place, mode);
  for (const [index, pair] of tls.tlsCertificates.entries()) checkPair(pair, place.in("tlsCertificates", index), mode);
}

function checkPair(
  pair: { readonly serverCertificate: string; readonly privateKey: string },
  place: Place,
  mode: string | undefined,
): void {
  if (pair.serverCertificate === "") place.in("serverCertificate").fault("field.required", `mode ${mode} needs a server certificate`);
  if (pair.privateKey === "") place.in("privateKey").fault("field.required", `mode ${mode} needs a private key`);
}

/** Names of the fields that say where certificates come from and are set. */
function certificateFields(tls: ServerTLSSettings): readonly string[] {
  const texts = ["serverCertificate", "privateKey", "caCertificates", "caCrl", "credentialName", "caCertCredentialName"] as const;
  const lists = ["credentialNames", "tlsCertificates"] as const;
  return [...texts.filter((name) => tls[name] !== ""), ...lists.filter((name) => tls[name].length > 0)];
}

function checkCipherSuites(suites: readonly string[], place: Place): void {
  const seen = new Set<string>();
  for (const [index, suite] of suites.entries()) {
    const name = suite.replace(/^[-+]/, "");
    if (!CIPHER_SUITES.has(name))
      place.in(index).fault("field.ineffective", `${quote(suite)} is not a cipher suite Envoy knows; it is left out`);
    else if (seen.has(suite)) place.in(index).fault("field.ineffective", `${quote(suite)} is listed twice`);
    seen.add(suite);
  }
}
