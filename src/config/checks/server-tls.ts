import { quote } from "../../base/quote.ts";
import { isCipherSuite } from "../../base/tls-parameters.ts";
import {
  ServerTLSSettings_TLSmode as Mode,
  type ServerTLSSettings,
  ServerTLSSettings_TLSProtocol as Version,
} from "../../gen/istio/networking/v1alpha3/shared_pb.js";
import type { Place } from "./place.ts";

/** Envoy serves one certificate per kind of key. */
const MOST_CERTIFICATES = 2;

/** Beside the certificates of the mesh, Istio lets these be and does not look at them. */
const FOR_CLIENTS: ReadonlySet<string> = new Set(["caCrl", "caCertCredentialName"]);

/** TLS of a Gateway's server or of a Sidecar's ingress listener. */
export function checkServerTls(tls: ServerTLSSettings, place: Place): void {
  checkCipherSuites(tls.cipherSuites, place.in("cipherSuites"));
  if ([Version.TLSV1_0, Version.TLSV1_1].includes(tls.minProtocolVersion) && tls.cipherSuites.length === 0)
    place
      .in("minProtocolVersion")
      .fault("field.ineffective", "none of the cipher suites that Envoy has by itself is of TLS below 1.2: list cipherSuites");
  if (![Mode.PASSTHROUGH, Mode.AUTO_PASSTHROUGH, Mode.SIMPLE].includes(tls.mode)) checkPins(tls, place);
  switch (tls.mode) {
    case Mode.PASSTHROUGH:
    case Mode.AUTO_PASSTHROUGH:
      if (certificateFields(tls).length > 0)
        place.fault("field.ineffective", `mode ${Mode[tls.mode]} ends no TLS here, so the certificates are not used`);
      checkSources(tls, place);
      if (tls.caCrl !== "" && tls.credentialName !== "")
        place.in("caCrl").fault("field.conflict", "the revocation list belongs into the credential");
      return;
    case Mode.ISTIO_MUTUAL:
      for (const name of certificateFields(tls))
        place
          .in(name)
          .fault(FOR_CLIENTS.has(name) ? "field.ineffective" : "field.conflict", "ISTIO_MUTUAL uses the certificates of the mesh");
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
  if (!checkSources(tls, place)) return;
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

/** Whether the certificates come from one place at most. */
function checkSources(tls: ServerTLSSettings, place: Place): boolean {
  const pair = tls.serverCertificate !== "" && tls.privateKey !== "";
  const sources = [tls.credentialName !== "", tls.credentialNames.length > 0, pair, tls.tlsCertificates.length > 0];
  if (sources.filter(Boolean).length < 2) return true;
  place.fault(
    "field.conflict",
    "give the certificates one way: credentialName, credentialNames, serverCertificate with privateKey, or tlsCertificates",
  );
  return false;
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

/** What a pin looks like. One that is none cannot be left out, since without it more clients would be let in; and Envoy refuses it. */
const PINS = {
  verifyCertificateSpki: { pattern: /^[A-Za-z0-9+/]{43}=$/, about: "SHA-256 of a public key in base64" },
  verifyCertificateHash: {
    pattern: /^(?:[0-9A-Fa-f]{64}|(?:[0-9A-Fa-f]{2}:){31}[0-9A-Fa-f]{2})$/,
    about: "SHA-256 of a certificate in hexadecimal",
  },
} as const;

function checkPins(tls: ServerTLSSettings, place: Place): void {
  for (const name of ["verifyCertificateSpki", "verifyCertificateHash"] as const)
    for (const [index, pin] of tls[name].entries())
      if (!PINS[name].pattern.test(pin)) place.in(name, index).fault("field.invalid", `${quote(pin)} is not the ${PINS[name].about}`);
}

function checkCipherSuites(suites: readonly string[], place: Place): void {
  const seen = new Set<string>();
  for (const [index, suite] of suites.entries()) {
    if (!isCipherSuite(suite))
      place.in(index).fault("field.ineffective", `${quote(suite)} is not a cipher suite Envoy knows; it is left out`);
    else if (seen.has(suite)) place.in(index).fault("field.ineffective", `${quote(suite)} is listed twice`);
    seen.add(suite);
  }
}
