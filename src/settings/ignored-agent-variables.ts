/**
 * Variables of Istio's agent that ours does not honour, each with the values that ask for what it does anyway. Most have no prefix by which they could be told
 * from variables of other programs, so they are listed.
 */
const IGNORED: Readonly<Record<string, readonly string[]>> = {
  CA_PROVIDER: ["Citadel"],
  CLOUD_PLATFORM: ["none"],
  CREDENTIAL_FETCHER_TYPE: ["JWT"],
  CREDENTIAL_IDENTITY_PROVIDER: [],
  ENABLE_PROBE_KEEPALIVE_CONNECTIONS: ["false"],
  FILE_DEBOUNCE_DURATION: [],
  GCP_METADATA: [],
  GCP_QUOTA_PROJECT: [],
  GCP_ZONE: [],
  HTTP_STRIP_FRAGMENT_FROM_PATH_UNSAFE_IF_DISABLED: ["true"],
  ISTIO_BOOTSTRAP: [],
  ISTIO_ENABLE_HTTP2_PROBING: ["true"],
  ISTIO_ENVOY_ENABLE_CORE_DUMP: ["false"],
  JWT_POLICY: ["third-party-jwt", "first-party-jwt"],
  PEER_METADATA_DISCOVERY: ["false"],
  PROXY_CONFIG_XDS_AGENT: [],
  WASM_HTTP_REQUEST_TIMEOUT: [],
  XDS_AUTH_PLAINTEXT: ["false"],
  XDS_AUTH_PROVIDER: [],
};

/** Those that are set and would change something in Istio's agent. */
export const ignoredAgentVariables = (env: Readonly<Record<string, string | undefined>>): readonly string[] =>
  Object.keys(IGNORED).filter((name) => {
    const value = env[name] ?? "";
    return value !== "" && IGNORED[name]?.includes(value) !== true;
  });
