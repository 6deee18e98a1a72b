export { type DownstreamTlsInput, downstreamTlsContext, INBOUND_CIPHERS, type TlsVersion } from "./downstream.ts";
export {
  credential,
  credentialRoots,
  fileCertificate,
  fileRoots,
  MESH_ROOTS,
  OWN_CERTIFICATE,
  OWN_ROOTS,
  PATH_SEPARATOR,
  SYSTEM,
  sdsSecret,
  WORKLOAD_CERTIFICATE,
} from "./sds-secret.ts";
export { buildSecret, type SecretContent } from "./secret.ts";
export { downstreamQuicSocket, downstreamTlsSocket, rawBufferSocket, upstreamTlsSocket } from "./transport-socket.ts";
export { type UpstreamTlsInput, upstreamTlsContext } from "./upstream.ts";
export { fileTrust, type PeerValidation, type SanMatch } from "./validation.ts";
