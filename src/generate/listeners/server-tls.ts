import {
  type CredentialHolder,
  credential,
  credentialRoots,
  type DownstreamTlsInput,
  fileCertificate,
  fileTrust,
  ownNames,
  type PeerValidation,
  type SecretName,
  standsAlone,
  type TlsVersion,
} from "../../envoy/tls/index.ts";
import { type MeshConfig, MeshConfig_TLSConfig_TLSProtocol as MeshVersion } from "../../gen/istio/mesh/v1alpha1/mesh_config_pb.js";
import {
  ServerTLSSettings_TLSmode as Mode,
  type ServerTLSSettings,
  ServerTLSSettings_TLSProtocol as Version,
} from "../../gen/istio/networking/v1alpha3/shared_pb.js";
import type { CertificateFiles, LocalServer } from "../../model/proxy.ts";

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

/**
 * TLS of a Gateway server or a Sidecar's ingress listener, by Istio's reference of ServerTLSSettings; what it does not say of versions,
 * ciphers and curves the mesh's `tlsDefaults` say. Undefined where it names no certificate, or one that only an agent serves and there is none.
 */
export function serverTls(tls: ServerTLSSettings, surroundings: ServerTlsSurroundings): DownstreamTlsInput | undefined {
  const { mesh, agent, files } = surroundings;
  if (tls.mode === Mode.ISTIO_MUTUAL && !agent && !standsAlone(files)) return undefined;
  const certificates = certificatesOf(tls, surroundings);
  if (certificates.length === 0) return undefined;
  const validation = validationOf(tls, surroundings);
  return {
    certificates,
    alpn: ALPN,
    requireClientCertificate: tls.mode === Mode.MUTUAL || tls.mode === Mode.ISTIO_MUTUAL,
    ...(validation !== undefined && { validation }),
    ...(tls.mode !== Mode.ISTIO_MUTUAL && parametersOf(tls, mesh)),
  };
}

/** What besides the settings decides how a server speaks TLS. */
export interface ServerTlsSurroundings {
  readonly mesh: MeshConfig | undefined;
  /** An agent beside the proxy serves it certificates. */
  readonly agent: LocalServer;
  /** What stands in for the proxy's certificate of the mesh. */
  readonly files: CertificateFiles | undefined;
  /** Who has the credentials that the control plane does not have. */
  readonly holder: CredentialHolder;
}

const MESH_VERSIONS = {
  [MeshVersion.TLS_AUTO]: undefined,
  [MeshVersion.TLSV1_2]: "TLSv1_2",
  [MeshVersion.TLSV1_3]: "TLSv1_3",
} as const satisfies Record<MeshVersion, TlsVersion | undefined>;

/** Mutual TLS of the mesh has parameters of its own, so these are for servers of other clients only. */
function parametersOf(tls: ServerTLSSettings, mesh: MeshConfig | undefined): Partial<DownstreamTlsInput> {
  const defaults = mesh?.tlsDefaults;
  const minVersion = VERSIONS[tls.minProtocolVersion] ?? MESH_VERSIONS[defaults?.minProtocolVersion ?? MeshVersion.TLS_AUTO];
  const maxVersion = VERSIONS[tls.maxProtocolVersion];
  const cipherSuites = tls.cipherSuites.length > 0 ? tls.cipherSuites : (defaults?.cipherSuites ?? []);
  const ecdhCurves = defaults?.ecdhCurves ?? [];
  return {
    ...(minVersion !== undefined && { minVersion }),
    ...(maxVersion !== undefined && { maxVersion }),
    ...(cipherSuites.length > 0 && { cipherSuites }),
    ...(ecdhCurves.length > 0 && { ecdhCurves }),
  };
}

function certificatesOf(tls: ServerTLSSettings, { agent, files, holder }: ServerTlsSurroundings): readonly SecretName[] {
  if (tls.mode === Mode.ISTIO_MUTUAL) return [ownNames(files, agent).certificate];
  if (tls.credentialNames.length > 0) return tls.credentialNames.map((name) => credential(name, holder));
  if (tls.credentialName !== "") return [credential(tls.credentialName, holder)];
  if (tls.tlsCertificates.length > 0)
    return tls.tlsCertificates.map(({ serverCertificate, privateKey }) => fileCertificate(serverCertificate, privateKey, agent));
  return tls.serverCertificate === "" ? [] : [fileCertificate(tls.serverCertificate, tls.privateKey, agent)];
}

function validationOf(tls: ServerTLSSettings, surroundings: ServerTlsSurroundings): PeerValidation | undefined {
  if (tls.mode !== Mode.MUTUAL && tls.mode !== Mode.OPTIONAL_MUTUAL && tls.mode !== Mode.ISTIO_MUTUAL) return undefined;
  return {
    ...trustOf(tls, surroundings),
    subjectAltNames: tls.subjectAltNames.map((exact) => ({ exact })),
    ...(tls.insecureSkipVerify === true && { untrusted: true }),
    ...(tls.verifyCertificateSpki.length > 0 && { spkiPins: tls.verifyCertificateSpki }),
    ...(tls.verifyCertificateHash.length > 0 && { certificateHashes: tls.verifyCertificateHash }),
  };
}

function trustOf(tls: ServerTLSSettings, { agent, files, holder }: ServerTlsSurroundings): Pick<PeerValidation, "roots" | "crlFile"> {
  const own = tls.credentialName || (tls.credentialNames[0] ?? "");
  // As in Istio roots of a credential's own stand over those of another credential, not over those in a file.
  const name = own !== "" || tls.caCertificates === "" ? tls.caCertCredentialName || own : "";
  if (tls.mode !== Mode.ISTIO_MUTUAL && name === "") return fileTrust({ roots: tls.caCertificates, revoked: tls.caCrl, agent });
  const roots = tls.mode === Mode.ISTIO_MUTUAL ? ownNames(files, agent).roots : namedRoots(name, holder);
  return { roots, ...(tls.caCrl !== "" && { crlFile: tls.caCrl }) };
}

/** A ConfigMap holds roots and nothing else, so its name says all; other names are those of certificates. */
const namedRoots = (name: string, holder: CredentialHolder): SecretName =>
  name.startsWith("configmap://") ? credential(name, holder) : credentialRoots(name, holder);
