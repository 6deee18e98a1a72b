export { type DownstreamTlsInput, downstreamTlsContext, INBOUND_CIPHERS, type TlsVersion } from "./downstream.ts";
export {
  credential,
  credentialRoots,
  fileCertificate,
  fileRoots,
  MESH_ROOTS,
  SYSTEM_ROOTS,
  sdsSecret,
  WORKLOAD_CERTIFICATE,
} from "./sds-secret.ts";
export { downstreamQuicSocket, downstreamTlsSocket, rawBufferSocket, upstreamTlsSocket } from "./transport-socket.ts";
export { type UpstreamTlsInput, upstreamTlsContext } from "./upstream.ts";
export type { PeerValidation, SanMatch } from "./validation.ts";
