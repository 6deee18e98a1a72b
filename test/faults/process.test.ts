import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdirSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { describe, it, onTestFinished } from "vitest";
import { Fleet, reachesAll } from "../../bench/fleet.ts";
import { endpointEdit, everythingEdit, type SceneEdit, sceneProxies, writeScene } from "../../bench/scene.ts";
import { systemClock } from "../../src/base/clock.ts";
import { tempDir } from "../support/cleanup.ts";
import { type Istiod, startIstiod } from "../support/istiod.ts";
import { eventually } from "../support/wait.ts";

/*
 * What befalls a process: it is killed in the middle of a push, stopped for a while, or its disk is full.
 */

const SHAPE = { services: 80, endpoints: 4, virtualServices: 10, destinationRules: 10, namespaces: 4, proxies: 40, classes: 4 };

async function sceneServer(env: Readonly<Record<string, string>> = {}): Promise<Istiod> {
  const home = await tempDir();
  await writeScene(home, SHAPE);
  return startIstiod({ home, env });
}

async function connectAll({ grpcPort }: Istiod): Promise<Fleet> {
  const fleet = new Fleet(grpcPort);
  onTestFinished(() => fleet.close());
  await fleet.connect(sceneProxies(SHAPE));
  return fleet;
}

const written =
  ({ write }: Istiod, { file, text }: SceneEdit) =>
  (): Promise<void> =>
    write(file, text);

describe("a control plane that is killed while it pushes", () => {
  it("comes back with all that was in force, and serves everybody", async () => {
    const istiod = await sceneServer();
    await connectAll(istiod);
    const broken = "apiVersion: networking.istio.io/v1\nkind: ServiceEntry\nmetadata: {name: kept, namespace: ns-0}\nspec: {hosts: 5}\n";
    const good = broken.replace("{hosts: 5}", "{hosts: [kept.example.com], ports: [{number: 80, name: http, protocol: HTTP}]}");
    await istiod.write("conf/kept.yaml", good);
    await eventually("the object is in force", async () => (await (await istiod.debug("/debug/configz")).text()).includes('"kept"'));
    await istiod.write("conf/kept.yaml", broken);
    const kept = (): readonly string[] =>
      readdirSync(join(istiod.home, "var/lib/istio/last-good")).filter((name) => !name.endsWith(".tmp"));
    await eventually("its last good version is on disk", () => kept().length === 1);
    const { file, text } = everythingEdit(1);
    await istiod.write(file, text);
    await eventually("the push has begun", async () => (await istiod.metric("pilot_xds_pushes", 'type="cds"')) > SHAPE.proxies);
    await istiod.stop("SIGKILL");
    await istiod.start();
    assert.ok((await (await istiod.debug("/debug/configz")).text()).includes('"kept"'), "the last good version is gone");
    const again = await connectAll(istiod);
    const edit = endpointEdit(7);
    const { touched } = await again.observe(written(istiod, edit), reachesAll(edit));
    assert.equal(touched, SHAPE.proxies);
  });
});

describe("a control plane that gets no processor for a while", () => {
  it("goes on where it stopped: no stream is lost, and what changed meanwhile arrives", async () => {
    const istiod = await sceneServer();
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
    const istiod = await sceneServer({ GRPC_KEEPALIVE_INTERVAL: "1s", GRPC_KEEPALIVE_TIMEOUT: "20s" });
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

const canMount = process.getuid?.() === 0;
if (!canMount) process.stdout.write("a full disk is not tried: mounting a small file system needs root\n");

describe.skipIf(!canMount)("a control plane whose disk is full", () => {
  it("says so, keeps the last good version in force, and goes on serving", async () => {
    const istiod = await startIstiod();
    const state = join(istiod.home, "var/lib/istio/last-good");
    mkdirSync(state, { recursive: true });
    execFileSync("mount", ["-t", "tmpfs", "-o", "size=4k", "full", state]);
    onTestFinished(() => void execFileSync("umount", ["-l", state]));
    const names = Array.from({ length: 300 }, (_, index) => `host-${index}`);
    const text = (spec: string): string =>
      names
        .map((name) => `{apiVersion: networking.istio.io/v1, kind: ServiceEntry, metadata: {name: ${name}, namespace: a}, spec: ${spec}}`)
        .join("\n---\n");
    await istiod.write("conf/a.yaml", text("{hosts: [a.example.com], ports: [{number: 80, name: http, protocol: HTTP}]}"));
    await eventually("they are in force", async () => (await istiod.metric("istiod_engine_inputs")) >= names.length);
    await istiod.write("conf/a.yaml", text("{hosts: 5}"));
    await eventually("the full disk is reported", () => istiod.log().includes("cannot keep the last good version of an object on disk"));
    assert.ok((await istiod.metric("istiod_engine_inputs")) >= names.length);
    assert.equal((await fetch(`http://127.0.0.1:${istiod.httpPort}/ready`)).status, 200);
  });
});
