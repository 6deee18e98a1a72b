import type { SettingDef } from "./setting-def.ts";

/** Variables that say where the control plane listens. */
export const LISTEN_SETTINGS = {
  grpcAddr: {
    env: "GRPC_ADDR",
    type: "address",
    default: undefined,
    restart: true,
    own: true,
    about: "Where xDS is served in plaintext; wins over `listen.grpcAddr`. Empty turns it off.",
  },
  secureGrpcAddr: {
    env: "SECURE_GRPC_ADDR",
    type: "address",
    default: undefined,
    restart: true,
    own: true,
    about: "Where xDS, CA, SDS and MCP are served over TLS; wins over `listen.secureGrpcAddr`. Empty turns it off.",
  },
  legacyGrpcAddr: {
    env: "LEGACY_GRPC_ADDR",
    type: "address",
    default: undefined,
    restart: true,
    own: true,
    about: "With `sidecar: true`, a second address for the same; wins over `listen.legacyGrpcAddr`. Empty turns it off.",
  },
  httpsAddr: {
    env: "HTTPS_ADDR",
    type: "address",
    default: undefined,
    restart: true,
    own: true,
    about: "Where the webhooks are served; wins over `listen.httpsAddr`. Empty turns it off.",
  },
  httpAddr: {
    env: "HTTP_ADDR",
    type: "address",
    default: undefined,
    restart: true,
    own: true,
    about: "Where readiness, debug pages and the dashboard are served; wins over `listen.httpAddr`. Empty turns it off.",
  },
  debugHosts: {
    env: "ISTIOD_DEBUG_HOSTS",
    type: "string",
    default: "",
    restart: true,
    own: true,
    about:
      "Names, separated by commas, under which debug pages may be asked for besides those of loopback: `istiod.istio-system.svc`, say. Against pages of other sites that resolve to istiod.",
  },
  monitoringAddr: {
    env: "MONITORING_ADDR",
    type: "address",
    default: undefined,
    restart: true,
    own: true,
    about: "Where metrics and the version are served; wins over `listen.monitoringAddr`. Empty turns it off.",
  },
} as const satisfies Record<string, SettingDef>;
