import { describe, expect, it } from "vitest";
import { systemClock } from "../../src/base/clock.ts";
import { startHostMesh, WEB_PORT } from "../support/host-mesh.ts";
import { hostsImpossible } from "../support/netns.ts";
import { keepCalling } from "../support/traffic.ts";

const LIFE_SECONDS = 60;
const LASTS_MS = 180_000;
/** A certificate is renewed at half its life, so there are five renewals; a machine that is very busy may be late for some. */
const LEAST_ROTATIONS = 2;
/** Between two requests, and how many there are between two looks at the certificates. */
const PAUSE_MS = 15;
const REQUESTS_A_LOOK = 25;

/** Handshakes all the time: else one connection of before the first renewal could carry everything. */
const ONE_REQUEST_A_CONNECTION = `
apiVersion: networking.istio.io/v1
kind: DestinationRule
metadata: {name: web, namespace: shop}
spec: {host: web.shop.svc.cluster.local, trafficPolicy: {connectionPool: {http: {maxRequestsPerConnection: 1}}}}
`;

const impossible = hostsImpossible();

describe.skipIf(impossible !== undefined)(`certificates on machines (${impossible ?? "network namespaces with interception"})`, () => {
  it(`that live for ${LIFE_SECONDS} s are replaced at both ends for ${LASTS_MS / 1_000} s, and no request is lost`, {
    timeout: LASTS_MS + 240_000,
  }, async () => {
    const { hosts, agents, target } = await startHostMesh({ config: ONE_REQUEST_A_CONNECTION, env: { SECRET_TTL: `${LIFE_SECONDS}s` } });
    const serials = { client: new Set<string>(), web: new Set<string>() };
    // Steady, but not all that this machine can do: other tests run beside it.
    const traffic = keepCalling(target, async (to) => {
      await systemClock.sleep(PAUSE_MS);
      return hosts.client.ask("call", to);
    });
    const end = systemClock.monotonic() + LASTS_MS;
    while (systemClock.monotonic() < end) {
      await traffic.more(REQUESTS_A_LOOK);
      for (const name of ["client", "web"] as const) serials[name].add(await agents[name].serial());
    }
    expect(await traffic.stop()).toEqual([]);
    for (const name of ["client", "web"] as const) expect(serials[name].size - 1, name).toBeGreaterThanOrEqual(LEAST_ROTATIONS);
    // What Envoy holds is also what it showed: the server saw as many certificates of the client.
    const shown = (await hosts.web.ask("hits", { port: WEB_PORT })).map(({ peer = "" }) => /Hash=([0-9a-f]{64})/.exec(peer)?.[1]);
    expect(new Set(shown).size - 1).toBeGreaterThanOrEqual(LEAST_ROTATIONS);
  });
});
