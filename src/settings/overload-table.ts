import type { SettingDef } from "./setting-def.ts";

/** What a control plane does when it has more to do than it can do at once. */
export const OVERLOAD_SETTINGS = {
  admittedPerSecond: {
    env: "PILOT_MAX_REQUESTS_PER_SECOND",
    type: "float",
    default: "0",
    restart: true,
    about:
      "Proxies let in within a second when many come at once; the others wait. 0 lets in as many as can be served, which is found out while they are; Istio guesses it from the number of processors.",
  },
  xdsSendTimeoutMs: {
    env: "PILOT_XDS_SEND_TIMEOUT",
    type: "duration",
    default: "5m",
    restart: true,
    about: "How long a proxy may take over one response. Whoever has not taken all of it by then is cut and may come again.",
  },
  memoryLimitBytes: {
    env: "ISTIO_MEMORY_LIMIT_BYTES",
    type: "int",
    default: "0",
    own: true,
    about:
      "Memory this process may use; 0 takes the limit of the cgroup. Near it caches are dropped, proxies that connect wait, and at last those that do not read are cut. The heap has a limit of its own (`NODE_OPTIONS=--max-old-space-size`), which is watched in the same way.",
  },
} as const satisfies Record<string, SettingDef>;
