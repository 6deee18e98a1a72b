import type { SettingDef } from "./setting-def.ts";

/** Proxies of the environment, for documents that are fetched from elsewhere. Istio's programs have them from Go. */
export const PROXY_SETTINGS = {
  httpProxy: {
    env: "HTTP_PROXY",
    alias: "http_proxy",
    type: "string",
    default: "",
    restart: true,
    login: true,
    about: "Proxy for documents (keys of token issuers, Wasm modules) that are fetched over `http:`.",
  },
  httpsProxy: {
    env: "HTTPS_PROXY",
    alias: "https_proxy",
    type: "string",
    default: "",
    restart: true,
    login: true,
    about: "The same for `https:`; a tunnel, so that servers prove who they are as they do without.",
  },
  noProxy: {
    env: "NO_PROXY",
    alias: "no_proxy",
    type: "string",
    default: "",
    restart: true,
    about: "What is fetched directly: names (and all below them), addresses, ranges, each but a range with a port if need be; `*` for all.",
  },
} as const satisfies Record<string, SettingDef>;
