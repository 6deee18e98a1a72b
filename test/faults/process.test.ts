import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { describe, it, onTestFinished } from "vitest";
import { Fleet, type FleetOptions, reachesAll } from "../../bench/fleet.ts";
import type { Progress } from "../../bench/progress.ts";
import { endpointEdit, routeEdit, type SceneEdit, type SceneShape, sceneProxies, writeScene } from "../../bench/scene.ts";
import { systemClock } from "../../src/base/clock.ts";
import { tempDir } from "../support/cleanup.ts";
import { type Istiod, startIstiod } from "../support/istiod.ts";
import { eventually } from "../support/wait.ts";

/*
 * What befalls a process: it is killed in the middle of a push, or stopped for a while.
 */

const SHAPE = { services: 80, endpoints: 4, virtualServices: 10, destinationRules: 10, namespaces: 4, proxies: 40, classes: 4 };

async function sceneServer(shape: SceneShape, env: Readonly<Record<string, string>> = {}): Promise<Istiod> {
  const home = await tempDir();
  await writeScene(home, shape);
  return startIstiod({ home, env });
}

interface Connected extends FleetOptions {
  readonly shape?: SceneShape;
  /** A text that is looked for in what they are sent from the beginning. */
  readonly marker?: string;
}

async function connectAll({ grpcPort }: Istiod, { shape = SHAPE, marker, ...options }: Connected = {}): Promise<Fleet> {
  const fleet = new Fleet(grpcPort, options);
  onTestFinished(() => fleet.close());
  if (marker !== undefined) fleet.lookFor(marker);
  await fleet.connect(sceneProxies(shape));
  return fleet;
}

const written =
  ({ write }: Istiod, { file, text }: SceneEdit) =>
  (): Promise<void> =>
    write(file, text);

/** Half of the proxies do not read while the push goes on, and what they are sent does not fit the window they give. */
const PUSH_SHAPE = { ...SHAPE, services: 400, virtualServices: 400 };
const PUSH_WINDOW = 65_535;
const READERS = PUSH_SHAPE.proxies / 2;

/** Versions by type and name. */
type Held = Readonly<Record<string, string>>;

/** What proxies hold as they go along, who was sent a text that was looked for, and what is said to one that it need not be told. */
function holdings() {
  const [latest, marked] = [new Map<string, Progress>(), new Set<string>()];
  const [needless, removed] = [new Set<string>(), new Set<string>()];
  const received: FleetOptions["received"] = ({ proxy, progress }, { typeUrl, resources, removed: gone }) => {
    const before = latest.get(proxy.name)?.held.get(typeUrl);
    latest.set(proxy.name, progress);
    for (const { name, version, marker } of resources) {
      if (marker !== undefined) marked.add(proxy.name);
      if (before?.get(name)?.version === version) needless.add(`${typeUrl} ${name}`);
    }
    for (const name of gone) removed.add(`${typeUrl} ${name}`);
  };
  const held = (): Readonly<Record<string, Held>> =>
    Object.fromEntries(
      [...latest].map(([name, progress]) => [
        name,
        Object.fromEntries(
          [...progress.held].flatMap(([typeUrl, all]) => [...all.values()].map((one) => [`${typeUrl} ${one.name}`, one.version])),
        ),
      ]),
    );
  return { received, held, marked, needless, removed };
}

const namesOf = (held: Readonly<Record<string, Held>>): ReadonlySet<string> => new Set(Object.values(held).flatMap(Object.keys));

/** Services that come and go while the control plane is away. */
const extra = (name: string): string =>
  `apiVersion: networking.istio.io/v1\nkind: ServiceEntry\nmetadata: {name: ${name}, namespace: ns-0}\nspec: {hosts: [${name}.test], location: MESH_INTERNAL, resolution: STATIC, ports: [{number: 9999, name: tcp, protocol: TCP}], endpoints: [{address: 10.127.9.9}]}\n`;

/**
 * Changes a route for all, kills the server when some of the proxies that read have been sent it (those that do not cannot have been), changes more while it is
 * away, and has all of them come back with what they hold.
 */
async function killWhilePushing(istiod: Istiod, shape: SceneShape, edit: SceneEdit): Promise<ReturnType<typeof holdings>> {
  const seen = holdings();
  const open = (): Fleet => {
    const fleet = new Fleet(istiod.grpcPort, { window: PUSH_WINDOW, received: seen.received });
    onTestFinished(() => fleet.close());
    return fleet;
  };
  const [readers, deaf] = [open(), open()];
  const proxies = sceneProxies(shape);
  await readers.connect(proxies.slice(0, READERS));
  await deaf.connect(proxies.slice(READERS));
  deaf.stall();
  for (const fleet of [readers, deaf]) fleet.lookFor(edit.marker);
  const restart = async (): Promise<void> => {
    await istiod.write(edit.file, edit.text);
    await eventually("some have been sent the change", () => seen.marked.size > 0);
    // One host is on its way no longer than its first byte, but those who do not read have not taken it.
    if (shape.vhds !== true) assert.ok((await istiod.metric("istiod_xds_unsent_bytes")) > 0, "nothing was on its way any more");
    await istiod.stop("SIGKILL");
    assert.ok(seen.marked.size <= READERS, `${seen.marked.size} proxies had been sent the change`);
    for (const kept of [seen.needless, seen.removed]) kept.clear();
    await istiod.remove("conf/gone.yaml");
    await istiod.write("conf/late.yaml", extra("late"));
    await istiod.start();
  };
  const restarted = readers.comeBack(restart);
  await Promise.all([restarted, deaf.comeBack(async () => void (await restarted))]);
  return seen;
}

/** The last good version of a broken object is in force, and on disk. */
async function keepLastGood(istiod: Istiod): Promise<void> {
  const broken = "apiVersion: networking.istio.io/v1\nkind: ServiceEntry\nmetadata: {name: kept, namespace: ns-0}\nspec: {hosts: 5}\n";
  const good = broken.replace("{hosts: 5}", "{hosts: [kept.example.com], ports: [{number: 80, name: http, protocol: HTTP}]}");
  await istiod.write("conf/kept.yaml", good);
  await eventually("the object is in force", async () => (await (await istiod.debug("/debug/configz")).text()).includes('"kept"'));
  await istiod.write("conf/kept.yaml", broken);
  const kept = (): readonly string[] => readdirSync(join(istiod.home, "var/lib/istio/last-good")).filter((name) => !name.endsWith(".tmp"));
  await eventually("its last good version is on disk", () => kept().length === 1);
}

describe("a control plane that is killed while it pushes", () => {
  for (const vhds of [false, true])
    it(`tells proxies that come back what they lack and what is gone, and nothing they have (${vhds ? "hosts one by one" : "whole tables"})`, async () => {
      const shape = { ...PUSH_SHAPE, vhds };
      const istiod = await sceneServer(shape);
      await istiod.write("conf/gone.yaml", extra("gone"));
      await keepLastGood(istiod);
      const route = routeEdit(1);
      const seen = await killWhilePushing(istiod, shape, route);
      assert.ok((await (await istiod.debug("/debug/configz")).text()).includes('"kept"'), "the last good version is gone");

      const fresh = holdings();
      const again = await connectAll(istiod, { shape, marker: route.marker, received: fresh.received });
      assert.equal(fresh.marked.size, shape.proxies, "some are not sent what changed before the end");
      const now = fresh.held();
      assert.deepEqual(seen.held(), now);
      assert.equal(seen.marked.size, shape.proxies);
      assert.deepEqual([...seen.needless], [], "what they have was sent again");
      const there = namesOf(now);
      assert.deepEqual(
        [...seen.removed].filter((name) => there.has(name)),
        [],
        "what is still there was removed",
      );
      assert.ok([...there].some((name) => name.includes("late.test")) && [...seen.removed].some((name) => name.includes("gone.test")));
      const edit = endpointEdit(7);
      const { touched } = await again.observe(written(istiod, edit), reachesAll(edit));
      assert.equal(touched, shape.proxies);
    });
});

describe("a control plane that gets no processor for a while", () => {
  it("goes on where it stopped: no stream is lost, and what changed meanwhile arrives", async () => {
    const istiod = await sceneServer(SHAPE, { GRPC_KEEPALIVE_INTERVAL: "1s", GRPC_KEEPALIVE_TIMEOUT: "3s" });
    const fleet = await connectAll(istiod);
    // It has asked all of them whether they are there, and is away for longer than they are given to answer: the answers wait for it when it goes on.
    execFileSync("sleep", ["2.5"]);
    process.kill(istiod.pid(), "SIGSTOP");
    const edit = endpointEdit(8);
    const { touched } = await fleet.observe(async () => {
      await istiod.write(edit.file, edit.text);
      await systemClock.sleep(4_000);
      process.kill(istiod.pid(), "SIGCONT");
    }, reachesAll(edit));
    assert.equal(touched, SHAPE.proxies);
  });
});

describe("a control plane that gets little of a processor", () => {
  it("loses no stream, and what changes arrives", async () => {
    const istiod = await sceneServer(SHAPE, { GRPC_KEEPALIVE_INTERVAL: "1s", GRPC_KEEPALIVE_TIMEOUT: "20s" });
    const fleet = await connectAll(istiod);
    const starving = starve(istiod.pid());
    for (let step = 11; step < 14; step += 1) {
      const edit = endpointEdit(step);
      const { touched } = await fleet.observe(written(istiod, edit), reachesAll(edit));
      assert.equal(touched, SHAPE.proxies);
    }
    await starving.stop();
    assert.equal(await istiod.metric("pilot_xds"), SHAPE.proxies);
    assert.equal(await istiod.metric("pilot_xds_write_timeout"), 0);
  });
});

/** Lets a process run for a tenth of the time, in turns. */
function starve(pid: number): { stop(): Promise<void> } {
  const end = new AbortController();
  const turns = async (): Promise<void> => {
    while (!end.signal.aborted) {
      process.kill(pid, "SIGSTOP");
      await systemClock.sleep(180);
      process.kill(pid, "SIGCONT");
      await systemClock.sleep(20);
    }
  };
  const done = turns();
  return {
    stop() {
      end.abort();
      return done;
    },
  };
}
