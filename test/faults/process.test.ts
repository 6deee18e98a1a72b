import assert from "node:assert/strict";
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { describe, it, onTestFinished } from "vitest";
import { Fleet, type FleetOptions, reachesAll } from "../../bench/fleet.ts";
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

/** What proxies were sent: names by type, and who was sent the text that was looked for. */
function holdings(): { readonly held: Map<string, Set<string>>; readonly marked: Set<string> } & Pick<FleetOptions, "received"> {
  const held = new Map<string, Set<string>>();
  const marked = new Set<string>();
  return {
    held,
    marked,
    received({ proxy }, { typeUrl, resources }) {
      const names = held.get(proxy.name) ?? new Set<string>();
      held.set(proxy.name, names);
      for (const { name } of resources) names.add(`${typeUrl} ${name}`);
      if (resources.some(({ marker }) => marker !== undefined)) marked.add(proxy.name);
    },
  };
}

/** Changes a route for all, and kills the server when some of the proxies that read have been sent it; those that do not cannot have been. */
async function killWhilePushing(istiod: Istiod, edit: SceneEdit): Promise<ReturnType<typeof holdings>> {
  const before = holdings();
  const open = (): Fleet => {
    const fleet = new Fleet(istiod.grpcPort, { window: PUSH_WINDOW, ...(before.received !== undefined && { received: before.received }) });
    onTestFinished(() => fleet.close());
    return fleet;
  };
  const [readers, deaf] = [open(), open()];
  const proxies = sceneProxies(PUSH_SHAPE);
  await readers.connect(proxies.slice(0, READERS));
  await deaf.connect(proxies.slice(READERS));
  deaf.stall();
  for (const fleet of [readers, deaf]) fleet.lookFor(edit.marker);
  await istiod.write(edit.file, edit.text);
  await eventually("some have been sent the change", () => before.marked.size > 0);
  assert.ok((await istiod.metric("istiod_xds_unsent_bytes")) > 0, "nothing was on its way any more");
  await istiod.stop("SIGKILL");
  assert.ok(before.marked.size <= READERS, `${before.marked.size} proxies had been sent the change`);
  return before;
}

describe("a control plane that is killed while it pushes", () => {
  it("comes back with all that was in force, and brings everybody to what some had already been sent", async () => {
    const istiod = await sceneServer(PUSH_SHAPE);
    const broken = "apiVersion: networking.istio.io/v1\nkind: ServiceEntry\nmetadata: {name: kept, namespace: ns-0}\nspec: {hosts: 5}\n";
    const good = broken.replace("{hosts: 5}", "{hosts: [kept.example.com], ports: [{number: 80, name: http, protocol: HTTP}]}");
    await istiod.write("conf/kept.yaml", good);
    await eventually("the object is in force", async () => (await (await istiod.debug("/debug/configz")).text()).includes('"kept"'));
    await istiod.write("conf/kept.yaml", broken);
    const kept = (): readonly string[] =>
      readdirSync(join(istiod.home, "var/lib/istio/last-good")).filter((name) => !name.endsWith(".tmp"));
    await eventually("its last good version is on disk", () => kept().length === 1);

    const route = routeEdit(1);
    const before = await killWhilePushing(istiod, route);
    await istiod.start();
    assert.ok((await (await istiod.debug("/debug/configz")).text()).includes('"kept"'), "the last good version is gone");
    const after = holdings();
    const again = await connectAll(istiod, { shape: PUSH_SHAPE, marker: route.marker, ...after });
    assert.equal(after.marked.size, PUSH_SHAPE.proxies, "some are not sent what changed before the end");
    assert.deepEqual(after.held, before.held);
    const edit = endpointEdit(7);
    const { touched } = await again.observe(written(istiod, edit), reachesAll(edit));
    assert.equal(touched, PUSH_SHAPE.proxies);
  });
});

describe("a control plane that gets no processor for a while", () => {
  it("goes on where it stopped: no stream is lost, and what changed meanwhile arrives", async () => {
    const istiod = await sceneServer(SHAPE);
    const fleet = await connectAll(istiod);
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
