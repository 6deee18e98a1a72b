import {
  credential,
  credentialRoots,
  type DownstreamTlsInput,
  fileCertificate,
  fileRoots,
  MESH_ROOTS,
  type PeerValidation,
  type TlsVersion,
  WORKLOAD_CERTIFICATE,
} from "../../envoy/tls/index.ts";
import {
  ServerTLSSettings_TLSmode as Mode,
  type ServerTLSSettings,
  ServerTLSSettings_TLSProtocol as Version,
} from "../../gen/istio/networking/v1alpha3/shared_pb.js";

/** Offered to clients of a server that ends TLS. */
const ALPN = ["h2", "http/1.1"];

const VERSIONS = {
  [Version.TLS_AUTO]: undefined,
  [Version.TLSV1_0]: "TLSv1_0",
  [Version.TLSV1_1]: "TLSv1_1",
  [Version.TLSV1_2]: "TLSv1_2",
  [Version.TLSV1_3]: "TLSv1_3",
} as const satisfies Record<Version, TlsVersion | undefined>;

/** Whether TLS goes through to what is behind, untouched. */
export const passesThrough = (tls: ServerTLSSettings): boolean => tls.mode === Mode.PASSTHROUGH || tls.mode === Mode.AUTO_PASSTHROUGH;

/** TLS of a Gateway server or a Sidecar's ingress listener, by Istio's reference of ServerTLSSettings. Undefined where it names no certificate. */
export function serverTls(tls: ServerTLSSettings): DownstreamTlsInput | undefined {
  const certificates = certificatesOf(tls);
  if (certificates.length === 0) return undefined;
  const minVersion = VERSIONS[tls.minProtocolVersion];
  const maxVersion = VERSIONS[tls.maxProtocolVersion];
  const validation = validationOf(tls);
  return {
    certificates,
    alpn: ALPN,
    requireClientCertificate: tls.mode === Mode.MUTUAL || tls.mode === Mode.ISTIO_MUTUAL,
    ...(validation !== undefined && { validation }),
    ...(minVersion !== undefined && { minVersion }),
    ...(maxVersion !== undefined && { maxVersion }),
    ...(tls.cipherSuites.length > 0 && { cipherSuites: tls.cipherSuites }),
  };
}

function certificatesOf(tls: ServerTLSSettings): readonly string[] {
  if (tls.mode === Mode.ISTIO_MUTUAL) return [WORKLOAD_CERTIFICATE];
  if (tls.credentialNames.length > 0) return tls.credentialNames.map(credential);
  if (tls.credentialName !== "") return [credential(tls.credentialName)];
  if (tls.tlsCertificates.length > 0)
    return tls.tlsCertificates.map(({ serverCertificate, privateKey }) => fileCertificate(serverCertificate, privateKey));
  return tls.serverCertificate === "" ? [] : [fileCertificate(tls.serverCertificate, tls.privateKey)];
}

function validationOf(tls: ServerTLSSettings): PeerValidation | undefined {
  if (tls.mode !== Mode.MUTUAL && tls.mode !== Mode.OPTIONAL_MUTUAL && tls.mode !== Mode.ISTIO_MUTUAL) return undefined;
  return {
    roots: rootsOf(tls),
    subjectAltNames: tls.subjectAltNames.map((exact) => ({ exact })),
    ...(tls.caCrl !== "" && { crlFile: tls.caCrl }),
    ...(tls.verifyCertificateSpki.length > 0 && { spkiPins: tls.verifyCertificateSpki }),
    ...(tls.verifyCertificateHash.length > 0 && { certificateHashes: tls.verifyCertificateHash }),
  };
}

function rootsOf(tls: ServerTLSSettings): string {
  if (tls.mode === Mode.ISTIO_MUTUAL) return MESH_ROOTS;
  if (tls.caCertCredentialName !== "") return credentialRoots(tls.caCertCredentialName);
  const name = tls.credentialName || tls.credentialNames[0];
  return name === undefined || name === "" ? fileRoots(tls.caCertificates) : credentialRoots(name);
}
