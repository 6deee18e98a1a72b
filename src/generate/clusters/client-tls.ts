import { create } from "@bufbuild/protobuf";
import { type OutboundClusterName, sniClusterName, type TransportInput } from "../../envoy/cluster/index.ts";
import {
  credential,
  credentialRoots,
  fileCertificate,
  fileRoots,
  fileTrust,
  MESH_ROOTS,
  type PeerValidation,
  type SecretName,
  SYSTEM,
  type UpstreamTlsInput,
  WORKLOAD_CERTIFICATE,
} from "../../envoy/tls/index.ts";
import type { MeshConfig } from "../../gen/istio/mesh/v1alpha1/mesh_config_pb.js";
import {
  type ClientTLSSettings,
  ClientTLSSettingsSchema,
  ClientTLSSettings_TLSmode as TlsMode,
} from "../../gen/istio/networking/v1alpha3/destination_rule_pb.js";
import type { CertificateFiles, LocalServer } from "../../model/proxy.ts";

/** What decides how a client secures connections to one cluster. */
export interface ClientTlsQuery {
  readonly cluster: OutboundClusterName;
  readonly settings: ClientTLSSettings | undefined;
  readonly mesh: MeshConfig;
  /** The client can get a certificate of the mesh. */
  readonly identity: LocalServer;
  /** A certificate in files that the client shows in its place, to all that are not outside the mesh. */
  readonly files: CertificateFiles | undefined;
  /** Names in `credentialName` may be used: at gateways, and where the rule selects its workloads. */
  readonly credentials: boolean;
  /** A server on the client's machine has some of them. */
  readonly credentialSocket: boolean;
  /** Servers may be expected to take mutual TLS where nothing is said: not outside the mesh, not where it is switched off. */
  readonly automatic: boolean;
  /** Endpoints are not known to the proxy one by one, so their metadata cannot decide. */
  readonly addressless: boolean;
  /** Servers are found by the name that a request asks for, so they must have that name whatever else is demanded. */
  readonly byName?: true;
  readonly http2: boolean;
  /** `ns/account` of the servers. Asked only where needed. */
  readonly serviceAccounts: () => readonly string[];
  /** Names a ServiceEntry demands of the servers. */
  readonly subjectAltNames: readonly string[];
  /** The service is a ServiceEntry: TLS that a rule asks for verifies the names it has, as TLS inside the mesh does. */
  readonly external: boolean;
}

export interface ClientTls {
  readonly security: TransportInput["security"];
  readonly autoSni: boolean;
  readonly autoSanValidation: boolean;
}

/** No TLS at all. */
export const PLAIN: ClientTls = { security: { kind: "plain" }, autoSni: false, autoSanValidation: false };

/**
 * Chooses plain text, TLS or mutual TLS. Where no rule says anything and the mesh has automatic mutual TLS, each endpoint decides by its
 * metadata (Istio's documentation, "Auto mutual TLS").
 */
export function clientTls(query: ClientTlsQuery): ClientTls {
  const { settings, identity, files, automatic, addressless } = query;
  if (settings === undefined) {
    if (!automatic) return PLAIN;
    // What a server's metadata says is about certificates of the mesh, so it cannot decide about others (as in Istio).
    if (files !== undefined) return { ...byRequest(query), security: { kind: "tls", tls: filesTls(query, files) } };
    return identity ? { ...byRequest(query), security: { kind: addressless ? "tls" : "auto", tls: meshTls(query) } } : PLAIN;
  }
  switch (settings.mode) {
    case TlsMode.ISTIO_MUTUAL:
      if (files !== undefined) return originatedTls({ ...query, credentials: false }, shownFrom(files, settings));
      return identity ? { ...byRequest(query), security: { kind: "tls", tls: meshTls(query) } } : PLAIN;
    case TlsMode.MUTUAL:
      if (files !== undefined) return originatedTls({ ...query, credentials: false }, shownFrom(files, settings));
      return originatedTls(query, settings);
    case TlsMode.SIMPLE:
      return originatedTls(query, settings);
    default:
      return PLAIN;
  }
}

/** Whether names follow the request in mutual TLS of the mesh: only where the servers are found by it. */
const byRequest = ({ byName, settings }: ClientTlsQuery): Pick<ClientTls, "autoSni" | "autoSanValidation"> => ({
  autoSni: byName === true && (settings?.sni ?? "") === "",
  autoSanValidation: byName === true && settings?.insecureSkipVerify !== true,
});

/** The name of the server that a client of the mesh asks for; none where the request has it. */
function meshSni({ byName, cluster, settings }: ClientTlsQuery): Pick<UpstreamTlsInput, "sni"> {
  const sni = settings?.sni || (byName === true ? "" : sniClusterName(cluster));
  return sni === "" ? {} : { sni };
}

/** Mutual TLS inside the mesh: own certificate, the mesh's roots, the service accounts of the servers as names. */
function meshTls(query: ClientTlsQuery): UpstreamTlsInput {
  const { settings, http2 } = query;
  const demanded = settings?.subjectAltNames ?? [];
  const names = demanded.length > 0 ? demanded : serviceNames(query);
  return {
    certificate: WORKLOAD_CERTIFICATE,
    validation: { roots: MESH_ROOTS, subjectAltNames: names.toSorted().map((exact) => ({ exact })) },
    ...meshSni(query),
    alpn: http2 ? ["istio", "h2"] : ["istio"],
  };
}

/** Automatic mutual TLS with the client's own files: servers are named and verified as in the mesh, all else is TLS as anybody speaks it. */
function filesTls(query: ClientTlsQuery, files: CertificateFiles): UpstreamTlsInput {
  const agent = query.identity;
  return {
    certificate: fileCertificate(files.chain, files.key, agent),
    validation: {
      roots: fileRoots(files.roots || SYSTEM, agent),
      subjectAltNames: serviceNames(query)
        .toSorted()
        .map((exact) => ({ exact })),
    },
    ...meshSni(query),
    alpn: query.http2 ? ["h2"] : [],
    ...tlsDefaults(query.mesh),
  };
}

/** A rule's mutual TLS with the client's own files: of what the rule says, the names count. */
const shownFrom = (
  { chain, key, roots }: CertificateFiles,
  { subjectAltNames, sni, insecureSkipVerify }: ClientTLSSettings,
): ClientTLSSettings =>
  create(ClientTLSSettingsSchema, {
    mode: TlsMode.MUTUAL,
    clientCertificate: chain,
    privateKey: key,
    caCertificates: roots,
    subjectAltNames,
    sni,
    ...(insecureSkipVerify !== undefined && { insecureSkipVerify }),
  });

/**
 * Names the servers of a service may have: those its ServiceEntry lists, and the identities of their accounts. Identities of the mesh stand
 * for those in all of its trust domains, so that both outlive a change of it.
 */
function serviceNames({ mesh, serviceAccounts, subjectAltNames }: ClientTlsQuery): readonly string[] {
  const domains = [mesh.trustDomain || "cluster.local", ...mesh.trustDomainAliases];
  const inEach = (path: string): readonly string[] => domains.map((domain) => `spiffe://${domain}/${path}`);
  const listed = subjectAltNames.flatMap((name) => {
    const [, domain = "", path = ""] = IDENTITY.exec(name) ?? [];
    return domains.includes(domain) ? inEach(path) : [name];
  });
  return [...new Set([...listed, ...serviceAccounts().map(pathOf).flatMap(inEach)])];
}

/** A workload's SPIFFE id: its trust domain, and the rest. */
const IDENTITY = /^spiffe:\/\/([^/]+)\/(ns\/[^/]+\/sa\/[^/]+)$/;

/** `namespace/account` as it stands in a SPIFFE id. */
function pathOf(account: string): string {
  const slash = account.indexOf("/");
  return `ns/${account.slice(0, slash)}/sa/${account.slice(slash + 1)}`;
}

/**
 * TLS the proxy speaks for the application. SNI, and the name to verify, follow the request's host where neither rule nor ServiceEntry
 * names any; identities of a ServiceEntry's endpoints are demanded besides.
 */
function originatedTls(query: ClientTlsQuery, settings: ClientTLSSettings): ClientTls {
  const { mesh, http2 } = query;
  const credentialName = query.credentials || isForEverybody(settings.credentialName) ? settings.credentialName : "";
  const demanded = settings.subjectAltNames.length > 0 || !query.external ? settings.subjectAltNames : serviceNames(query);
  const agent = query.identity;
  const certificate = settings.mode === TlsMode.MUTUAL ? clientCertificate(settings, credentialName, query) : undefined;
  const validation = validationOf({ settings, credentialName, names: demanded, agent, socket: query.credentialSocket });
  const auto = settings.sni === "";
  const named = settings.subjectAltNames.length + query.subjectAltNames.length > 0;
  return {
    autoSni: auto,
    autoSanValidation: validation !== undefined && (query.byName === true || (auto && !named)),
    security: {
      kind: "tls",
      tls: {
        ...(certificate !== undefined && { certificate }),
        ...(validation !== undefined && { validation }),
        ...(settings.sni !== "" && { sni: settings.sni }),
        alpn: http2 ? ["h2"] : [],
        ...tlsDefaults(mesh),
      },
    },
  };
}

/** Roots in a ConfigMap are no secret: every client may have them. */
const isForEverybody = (credentialName: string): boolean => credentialName.startsWith("configmap://");

function clientCertificate(settings: ClientTLSSettings, credentialName: string, query: ClientTlsQuery): SecretName | undefined {
  if (credentialName !== "") return credential(credentialName, { socket: query.credentialSocket });
  return settings.clientCertificate === "" ? undefined : fileCertificate(settings.clientCertificate, settings.privateKey, query.identity);
}

interface ValidationQuery {
  readonly settings: ClientTLSSettings;
  readonly credentialName: string;
  readonly names: readonly string[];
  readonly agent: LocalServer;
  readonly socket: boolean;
}

/** Servers are verified against the system's roots where the rule names no others, unless the rule says not to. */
function validationOf({ settings, credentialName, names, agent, socket }: ValidationQuery): PeerValidation | undefined {
  if (settings.insecureSkipVerify === true) return undefined;
  const subjectAltNames = names.map((exact) => ({ exact }));
  const revoked = settings.caCrl;
  if (credentialName !== "")
    return { roots: credentialRoots(credentialName, { socket }), subjectAltNames, ...(revoked !== "" && { crlFile: revoked }) };
  return { ...fileTrust({ roots: settings.caCertificates || SYSTEM, revoked, agent }), subjectAltNames };
}

/** Of the mesh's defaults clients take ciphers and curves; how old a version may be is for servers to say, as in Istio. */
function tlsDefaults(mesh: MeshConfig): Pick<UpstreamTlsInput, "cipherSuites" | "ecdhCurves"> {
  const defaults = mesh.tlsDefaults;
  if (defaults === undefined) return {};
  return {
    ...(defaults.cipherSuites.length > 0 && { cipherSuites: defaults.cipherSuites }),
    ...(defaults.ecdhCurves.length > 0 && { ecdhCurves: defaults.ecdhCurves }),
  };
}
