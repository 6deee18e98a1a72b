import { PROXY_SETTINGS } from "./proxy-table.ts";
import type { SettingDef } from "./setting-def.ts";

/** Variables of the control plane that are about tokens and their keys. */
export const POLICY_SETTINGS = {
  remoteJwks: {
    env: "PILOT_JWT_ENABLE_REMOTE_JWKS",
    type: "choice",
    choices: ["false", "istiod", "true", "hybrid", "envoy"],
    default: "false",
    restart: true,
    about:
      "Who fetches keys from a jwksUri: `false` and `istiod`: the control plane; `true` and `hybrid`: Envoy where the host is a service of the mesh, else the control plane; `envoy`: always Envoy. Tokens whose keys nobody has are refused.",
  },
  keyRefreshMs: {
    env: "PILOT_JWT_PUB_KEY_REFRESH_INTERVAL",
    type: "duration",
    default: "20m",
    restart: true,
    about: "How often the control plane fetches the keys of token issuers again.",
  },
  blockedKeyRanges: {
    env: "BLOCKED_CIDRS_IN_JWKS_URIS",
    type: "string",
    default: "",
    restart: true,
    about:
      "Ranges of addresses, separated by commas, from which the control plane fetches no keys, besides those of this machine, its links and metadata services.",
  },
  allowedKeyRanges: {
    env: "ALLOWED_CIDRS_IN_JWKS_URIS",
    type: "string",
    default: "",
    restart: true,
    own: true,
    about: "Ranges, separated by commas, from which it does, although they are of this machine or its links (`127.0.0.1/32`).",
  },
  ...PROXY_SETTINGS,
} as const satisfies Record<string, SettingDef>;
