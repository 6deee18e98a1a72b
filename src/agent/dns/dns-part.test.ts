import { once } from "node:events";
import { connect } from "node:net";
import { describe, expect, it, onTestFinished } from "vitest";
import { tempDir } from "../../../test/support/cleanup.ts";
import { freePort } from "../../../test/support/ports.ts";
import { systemClock } from "../../base/clock.ts";
import { silentLog } from "../../base/log.ts";
import { interceptOptions, readFlags } from "../iptables/intercept-flags.ts";
import type { AgentProxyType } from "../node-identity.ts";
import type { AgentContext } from "../parts.ts";
import { dnsProxy } from "./dns-part.ts";

/** Whether an agent of this type and metadata serves names. */
async function serves(
  type: AgentProxyType,
  metadata: Readonly<Record<string, string>>,
  { host = "127.0.0.1", asked = host }: { readonly host?: string; readonly asked?: string } = {},
): Promise<boolean> {
  const [port, baseDir, end] = [await freePort(), await tempDir(), new AbortController()];
  onTestFinished(() => end.abort());
  await dnsProxy({
    config: {
      type,
      baseDir,
      paths: { lastGood: baseDir },
      settings: { dnsAddress: `${host}:${port}`, podNamespace: "shop", dnsTimeoutMs: 100, dnsParallel: false },
    },
    node: { id: `${type}~10.0.0.1~web.shop~shop.svc.cluster.local`, metadata },
    clock: systemClock,
    log: silentLog,
    ...{ subscriptions: [], routes: [], checks: [], metrics: [] },
    signal: end.signal,
  } as unknown as AgentContext);
  const socket = connect(port, asked);
  onTestFinished(() => void socket.destroy());
  return Promise.race([once(socket, "connect").then(() => true), once(socket, "close").then(() => false)]).catch(() => false);
}

/** Whether interception leads questions to the agent. */
const isRedirected = (value: string): boolean =>
  interceptOptions(readFlags([], { ISTIO_META_DNS_CAPTURE: value }), { proxyUser: "1337", resolvers: ["10.0.0.10"], env: {} }).dnsServers
    .length > 0;

describe("names", () => {
  it.for([
    ["true", true],
    ["1", true],
    ["TRUE", true],
    ["t", true],
    ["false", false],
    ["0", false],
    ["yes", false],
  ] as const)("that are redirected where DNS_CAPTURE is %s (%s) are answered there", async ([value, asked]) => {
    expect(isRedirected(value)).toBe(asked);
    expect(await serves("sidecar", { DNS_CAPTURE: value })).toBe(asked);
  });

  it("are answered on every address where none is said, and on loopback where that is", async () => {
    expect(await serves("sidecar", { DNS_CAPTURE: "true" }, { host: "", asked: "127.0.0.9" })).toBe(true);
    expect(await serves("sidecar", { DNS_CAPTURE: "true" }, { host: "localhost", asked: "127.0.0.1" })).toBe(true);
    expect(await serves("sidecar", { DNS_CAPTURE: "true" }, { host: "localhost", asked: "127.0.0.9" })).toBe(false);
  });

  it("are answered at gateways where a server is asked for, since gateways capture nothing", async () => {
    expect(await serves("router", { DNS_CAPTURE: "true" })).toBe(false);
    expect(await serves("router", { ENABLE_DNS_SERVER: "1" })).toBe(true);
    expect(await serves("sidecar", { ENABLE_DNS_SERVER: "true" })).toBe(true);
  });
});
