import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { fromBinary } from "@bufbuild/protobuf";
import { afterAll, assert, beforeAll, describe, expect, it } from "vitest";
import { systemClock } from "../../src/base/clock.ts";
import { ClusterSchema } from "../../src/gen/envoy/config/cluster/v3/cluster_pb.js";
import { ClusterLoadAssignmentSchema } from "../../src/gen/envoy/config/endpoint/v3/endpoint_pb.js";
import { RouteConfigurationSchema } from "../../src/gen/envoy/config/route/v3/route_pb.js";
import { CLUSTER_TYPE, ENDPOINT_TYPE, ROUTE_TYPE } from "../../src/wire/type-urls.ts";
import { type Cluster, clusterImpossible, startCluster } from "../cluster/start-cluster.ts";
import { addressesOf } from "../support/assignments.ts";
import { tally } from "../support/calls.ts";
import { tempDir } from "../support/cleanup.ts";
import { addNamespaces, installCrds, serviceYaml, sliceYaml } from "../support/cluster-objects.ts";
import { httpEcho } from "../support/echo.ts";
import { type Istiod, startIstiod } from "../support/istiod.ts";
import { freePort } from "../support/ports.ts";
import { listening, startProxy } from "../support/proxy.ts";
import { startRelay } from "../support/relay.ts";
import { SHOP_HOST, shopRoutes, shopService, weights } from "../support/shop.ts";
import { eventually } from "../support/wait.ts";
import { subscribe } from "../support/xds-subscriber.ts";

/*
 * Three replicas, one of them with a clock that is wrong. The leader dies in the middle of 500 changes, then the API server does: proxies of every replica
 * end up with the last of each change and are never told of less, and what only a leader does goes on.
 */

const reason = clusterImpossible();
if (reason !== undefined) console.warn(`skipped: ${reason}`);

/** Longer than all the waits between attempts together, which double from 0.25 to 15 s; `OUTAGE_MS=60000` for the whole minute. */
const OUTAGE_MS = Number(process.env.OUTAGE_MS ?? 32_000);
const LONG_MS = 180_000;
const SERVICES = Array.from({ length: 25 }, (_, index) => `s${index}`);
/** Each changes every service's endpoints and routes. */
const ROUNDS = 10;
const AFTERWARDS = ROUNDS + 1;
const HOUR_MS = 3_600_000;
const LEASE = "istio-system/istio-namespace-controller-election";
const INJECTOR = "istio-sidecar-injector";

const hostOf = (service: string): string => `${service}.shop.svc.cluster.local`;
const addressIn = (service: string, round: number): string => `10.${round}.1.${SERVICES.indexOf(service) + 1}`;
const routeYaml = (service: string, round: number): string => `
apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: {name: ${service}, namespace: shop}
spec: {hosts: [${service}], http: [{route: [{destination: {host: ${service}}}], headers: {request: {set: {x-round: "${round}"}}}}]}
`;

/** What clients of one replica were told, all of it. */
interface Told {
  /** The last endpoints of each service, and the last header of each route. */
  state(): ReadonlyMap<string, string>;
  /** Every time something that is there was missing. */
  gaps(): readonly string[];
}

function listen({ grpcPort: port }: Istiod): Told {
  const node = { id: "sidecar~10.9.9.9~client.shop~shop.svc.cluster.local" };
  const names = SERVICES.map((service) => `outbound|80||${hostOf(service)}`);
  const endpoints = subscribe({ port, node, variant: "delta", typeUrl: ENDPOINT_TYPE, names });
  const clusters = subscribe({ port, node, variant: "sotw", typeUrl: CLUSTER_TYPE });
  const routes = subscribe({ port, node, variant: "sotw", typeUrl: ROUTE_TYPE, names: ["80"] });
  const assignments = () =>
    endpoints.flatMap(({ resources }) => resources.map(({ value }) => fromBinary(ClusterLoadAssignmentSchema, value)));
  const tables = () => routes.flatMap(({ resources }) => resources.map(({ value }) => fromBinary(RouteConfigurationSchema, value)));
  return {
    state: () =>
      new Map([
        ...assignments().map((one): [string, string] => [one.clusterName, addressesOf(one).join()]),
        ...(tables().at(-1)?.virtualHosts ?? []).map((host): [string, string] => [
          host.name,
          host.routes[0]?.requestHeadersToAdd.map(({ header }) => header?.value).join() ?? "",
        ]),
      ]),
    gaps: () => [
      ...assignments()
        .filter(({ endpoints: all }) => all.length === 0)
        .map(({ clusterName }) => `${clusterName} has no endpoints`),
      ...endpoints.flatMap(({ removed }) => removed.map((name) => `${name} is gone`)),
      ...clusters.flatMap(({ resources }) => {
        const there = new Set(resources.map(({ value }) => fromBinary(ClusterSchema, value).name));
        return names.filter((name) => !there.has(name)).map((name) => `no cluster ${name}`);
      }),
      ...routes.filter(({ resources }) => resources.length === 0).map(() => "no routes"),
      ...tables().flatMap(({ virtualHosts }) => {
        const there = new Set(virtualHosts.map(({ name }) => name));
        return SERVICES.filter((service) => !there.has(`${hostOf(service)}:80`)).map((service) => `no host ${service}`);
      }),
    ],
  };
}

const stateOf = (round: number): ReadonlyMap<string, string> =>
  new Map([
    ...SERVICES.map((service): [string, string] => [`outbound|80||${hostOf(service)}`, `${addressIn(service, round)}:8080`]),
    ...SERVICES.map((service): [string, string] => [`${hostOf(service)}:80`, String(round)]),
  ]);

/** Whether it was told of all that a round ended with; throws what is missing, so that a time-out says it. */
function hasReached(told: Told, round: number): true {
  const state = told.state();
  const missing = [...stateOf(round)].filter(([name, value]) => state.get(name) !== value);
  if (missing.length === 0) return true;
  const [name = "", value] = missing[0] ?? [];
  throw new Error(`${missing.length} are missing; ${name} is ${state.get(name)}, not ${value}`);
}

describe.skipIf(reason !== undefined)("three replicas of a control plane", () => {
  let cluster: Cluster;
  beforeAll(async () => {
    cluster = await startCluster({ controllerManager: false });
    await addNamespaces(cluster, "shop", "istio-system");
    await installCrds(cluster);
    const first = SERVICES.map((service) => serviceYaml(service) + sliceYaml(service, [addressIn(service, 0)]));
    await cluster.client.apply(`${first.join("")}---${SERVICES.map((service) => routeYaml(service, 0)).join("---")}`);
  });
  afterAll(() => cluster?.stop());

  async function replica(name: string, url: string): Promise<Istiod & { readonly name: string; readonly webhookPort: number }> {
    const webhookPort = await freePort();
    const env = { KUBECONFIG: cluster.kubeconfig, POD_NAMESPACE: "istio-system", POD_NAME: name };
    const shift = join(await tempDir(), "shift");
    await writeFile(shift, String(2 * HOUR_MS));
    const istiod = await startIstiod({
      files: { "mesh.yaml": "clusterWrites: true\n" },
      env: {
        ...env,
        HTTPS_ADDR: `127.0.0.1:${webhookPort}`,
        ISTIO_WEBHOOK_URL: url,
        SHIFTED_CLOCK_FILE: shift,
        NODE_OPTIONS: `--import=${join(import.meta.dirname, "../support/shifted-clock.ts")}`,
      },
    });
    return { ...istiod, name, webhookPort };
  }

  /** Writes every change of every round; those of one service in order, those of different ones at a time. */
  async function burst(progress: (done: number) => void): Promise<void> {
    let done = 0;
    const apply = async (yaml: string): Promise<void> => {
      // A webhook that is late on a machine with other work fails the write; whoever applies something does so again.
      await eventually("it is written", async () => (await cluster.client.apply(yaml)) !== undefined, LONG_MS);
      done += 1;
      progress(done);
    };
    const chain = async (service: string): Promise<void> => {
      for (let round = 1; round <= ROUNDS; round++)
        await Promise.all([apply(sliceYaml(service, [addressIn(service, round)])), apply(routeYaml(service, round))]);
    };
    await Promise.all(SERVICES.map(chain));
    expect(done).toBe(500);
  }

  const lease = async (): Promise<LeaseSpec> => ((await cluster.client.get("Lease", LEASE))?.spec ?? {}) as LeaseSpec;
  /** Resolves when whoever leads has renewed the lease so often: meanwhile all others, who look as often, have looked at it. */
  const renewed = async (times: number): Promise<void> => {
    const seen = new Set<string | undefined>();
    await eventually("the lease is renewed", async () => seen.add((await lease()).renewTime).size > times, LONG_MS);
  };
  const rootsIn = async (namespace: string): Promise<string | undefined> =>
    ((await cluster.client.get("ConfigMap", `${namespace}/istio-ca-root-cert`))?.data as Record<string, string> | undefined)?.[
      "root-cert.pem"
    ];
  const bundle = async (): Promise<string> =>
    ((await cluster.client.get("MutatingWebhookConfiguration", INJECTOR)) as unknown as Injector | undefined)?.webhooks[0]?.clientConfig
      .caBundle ?? "";

  /** A real Envoy with one control plane, and who answers through it. */
  async function startEnvoy(xdsPort: number): Promise<() => Promise<Readonly<Record<string, number>>>> {
    const [v1, v2, port] = [await httpEcho("v1"), await httpEcho("v2"), await freePort()];
    await cluster.client.apply(`${shopService({ service: port, v1: v1.port, v2: v2.port })}---\n${shopRoutes(weights(100, 0))}`);
    await startProxy({ xdsPort, name: "client", address: "127.0.0.1" });
    await listening(port);
    const answers = (): Promise<Readonly<Record<string, number>>> => tally(10, { port, host: SHOP_HOST });
    await eventually("Envoy sends all to v1", async () => (await answers()).v1 === 10);
    return answers;
  }

  /** What only a leader does is done, as it was before. */
  async function expectDuties(before: { readonly root: string; readonly bundle: string }): Promise<void> {
    await addNamespaces(cluster, "late");
    await eventually("the roots are published", async () => (await rootsIn("late")) === before.root, LONG_MS);
    await cluster.client.patch("MutatingWebhookConfiguration", INJECTOR, {
      type: "json",
      body: [{ op: "remove", path: "/webhooks/0/clientConfig/caBundle" }],
    });
    await eventually("webhooks get their roots back", async () => (await bundle()) === before.bundle, LONG_MS);
    expect(await rootsIn("shop")).toBe(before.root);
  }

  it("lose nothing of a burst when the leader is killed in it, and the API server after it", async () => {
    // One address for the webhooks of all, as a Service would be.
    const front = await startRelay({ to: 1 });
    const replicas: Awaited<ReturnType<typeof replica>>[] = [];
    for (const name of ["a", "b", "c"]) replicas.push(await replica(name, `https://localhost:${front.port}`));
    const told = replicas.map(listen);
    await eventually("all have the beginning", () => told.every((one) => hasReached(one, 0)), LONG_MS);
    const holder = await eventually("one leads", async () => (await lease()).holderIdentity);
    const leader = replicas.find(({ name }) => name === holder) ?? assert.fail("a stranger leads");
    const [ahead = assert.fail(), other = assert.fail()] = replicas.filter((one) => one !== leader);
    front.pointAt(other.webhookPort);
    process.kill(ahead.pid(), "SIGUSR2");
    await renewed(2);
    await eventually("webhooks are kept", bundle);
    const before = { root: await eventually("roots are published", () => rootsIn("shop")), bundle: await bundle() };
    const answers = await startEnvoy(leader.grpcPort);

    let transitions: Promise<number> | undefined;
    const killLeader = async (): Promise<number> => {
      const { leaseTransitions = 0 } = await lease();
      await leader.stop("SIGKILL");
      return leaseTransitions;
    };
    await burst((done) => {
      if (done === 150) transitions = killLeader();
    });
    expect(await transitions, "a wrong clock took nothing from who led").toBe(0);
    const alive = replicas.flatMap((one, index) => (one === leader ? [] : (told[index] ?? [])));
    await eventually("all that live have the end", () => alive.every((one) => hasReached(one, ROUNDS)), LONG_MS);
    expect(await answers(), "Envoy goes on without its control plane").toEqual({ v1: 10 });

    await cluster.killApiServer();
    await systemClock.sleep(OUTAGE_MS);
    for (const { httpPort } of [ahead, other]) expect((await fetch(`http://127.0.0.1:${httpPort}/ready`)).status).toBe(200);
    await cluster.restartApiServer();
    const changes = SERVICES.map((one) => `${sliceYaml(one, [addressIn(one, AFTERWARDS)])}---${routeYaml(one, AFTERWARDS)}`);
    await cluster.client.apply(`${changes.join("---")}---\n${shopRoutes(weights(0, 100))}`);
    await eventually("both have what came after", () => alive.every((one) => hasReached(one, AFTERWARDS)), LONG_MS);
    await eventually("one of them leads", async () => [ahead.name, other.name].includes((await lease()).holderIdentity ?? ""), LONG_MS);
    await expectDuties(before);

    expect(await answers()).toEqual({ v1: 10 });
    await leader.start();
    const late = listen(leader);
    await eventually("who was killed has all of it", () => hasReached(late, AFTERWARDS), LONG_MS);
    await eventually("so has its Envoy", async () => (await answers()).v2 === 10, LONG_MS);
    expect(await leader.metric("pilot_total_xds_rejects")).toBe(0);
    expect([...told, late].flatMap((one) => one.gaps())).toEqual([]);
  }, 900_000);
});

interface LeaseSpec {
  readonly holderIdentity?: string;
  readonly leaseTransitions?: number;
  readonly renewTime?: string;
}

interface Injector {
  readonly webhooks: readonly { readonly clientConfig: { readonly caBundle?: string } }[];
}
