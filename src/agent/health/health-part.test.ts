import { once } from "node:events";
import { type AddressInfo, createServer } from "node:net";
import { describe, expect, it, onTestFinished } from "vitest";
import { freePort } from "../../../test/support/ports.ts";
import { eventually } from "../../../test/support/wait.ts";
import { systemClock } from "../../base/clock.ts";
import { silentLog } from "../../base/log.ts";
import { HEALTH_TYPE } from "../../wire/type-urls.ts";
import type { AgentContext } from "../parts.ts";
import { healthReports } from "./health-part.ts";

/** How Envoy is, and how often that was looked at. */
interface EnvoyState {
  unready?: string;
  looks: number;
}

/** Runs the part with a probe and gives what it announces, each time it does. */
async function reports(
  readinessProbe: object,
  state: EnvoyState = { looks: 0 },
  ending = new AbortController(),
): Promise<readonly unknown[]> {
  const said: unknown[] = [];
  const end = new AbortController();
  onTestFinished(() => end.abort());
  const announcements: AgentContext["announcements"] = [];
  await healthReports({
    config: { proxy: { given: { readinessProbe }, statusPort: 15_020 }, settings: { probeLocalhost: false } },
    node: { id: "sidecar~127.0.0.1~vm.shop~shop.svc.cluster.local", metadata: { INTERCEPTION_MODE: "NONE" } },
    clock: systemClock,
    log: silentLog,
    announcements,
    announce: () => said.push(announcements[0]?.()),
    checks: [
      () => {
        state.looks += 1;
        return state.unready;
      },
    ],
    metrics: [],
    ending: ending.signal,
    signal: end.signal,
  } as unknown as AgentContext);
  return said;
}

const ILL = { typeUrl: HEALTH_TYPE, error: { code: 500, message: expect.any(String) } };
const WELL = { typeUrl: HEALTH_TYPE };
/** On a busy machine an answer takes its time, which is no illness here. */
const PATIENT = { timeoutSeconds: 60 };
const first = (said: readonly unknown[]): Promise<unknown> => eventually("it is told", () => said[0] ?? false);

describe("what an agent tells of its workload", () => {
  it("is whether it takes connections", async () => {
    const server = createServer().listen(0, "127.0.0.1");
    await once(server, "listening");
    onTestFinished(() => void server.close());
    const { port } = server.address() as AddressInfo;
    expect(await first(await reports({ ...PATIENT, tcpSocket: { port } }))).toEqual(WELL);
    expect(await first(await reports({ tcpSocket: { port: await freePort() } }))).toEqual(ILL);
  });

  it("is what a command says", async () => {
    expect(await first(await reports({ ...PATIENT, exec: { command: ["true"] } }))).toEqual(WELL);
    expect(await first(await reports({ ...PATIENT, exec: { command: ["sh", "-c", "echo no disk; exit 1"] } }))).toEqual({
      ...ILL,
      error: { code: 500, message: "sh ended with status 1: no disk" },
    });
  });

  it("is that it goes, as soon as the agent is told to end", async () => {
    const ending = new AbortController();
    const said = await reports({ ...PATIENT, exec: { command: ["true"] } }, { looks: 0 }, ending);
    expect(await first(said)).toEqual(WELL);
    ending.abort();
    expect(said.at(-1)).toEqual({ ...ILL, error: { code: 500, message: "its proxy is drained and then ends" } });
  });

  it("is whether its health service serves, where it has one", async () => {
    expect(await first(await reports({ grpc: { port: await freePort() } }))).toEqual(ILL);
  });

  it("is nothing before Envoy has its configuration, and illness when Envoy loses it", async () => {
    const state: EnvoyState = { unready: "Envoy is not there", looks: 0 };
    const said = await reports({ ...PATIENT, exec: { command: ["true"] }, periodSeconds: 1 }, state);
    await eventually("it was looked at a few times", () => state.looks > 2);
    expect(said).toEqual([]);
    delete state.unready;
    expect(await first(said)).toEqual(WELL);
    state.unready = "Envoy is gone";
    await eventually("that is told, too", () => said.length === 2);
    expect(said[1]).toEqual({ ...ILL, error: { code: 500, message: "Envoy is gone" } });
  });
});
