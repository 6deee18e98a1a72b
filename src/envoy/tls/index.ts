export { type DownstreamTlsInput, downstreamTlsContext, INBOUND_CIPHERS, type TlsVersion } from "./downstream.ts";
export {
  CREDENTIAL_CLUSTER,
  CREDENTIAL_SOCKET,
  type CredentialHolder,
  credential,
  credentialRoots,
  fileCertificate,
  fileRoots,
  MESH_ROOTS,
  OWN_CERTIFICATE,
  OWN_ROOTS,
  type OwnFiles,
  ownNames,
  PATH_SEPARATOR,
  type SecretName,
  SYSTEM,
  sdsSecret,
  standsAlone,
  WORKLOAD_CERTIFICATE,
} from "./sds-secret.ts";
export { buildSecret, type SecretContent } from "./secret.ts";
export { downstreamQuicSocket, downstreamTlsSocket, rawBufferSocket, upstreamTlsSocket } from "./transport-socket.ts";
export { type UpstreamTlsInput, upstreamTlsContext } from "./upstream.ts";
export { fileTrust, type PeerValidation, type SanMatch } from "./validation.ts";
