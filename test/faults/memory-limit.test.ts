import assert from "node:assert/strict";
import { describe, it } from "vitest";
import { forgetPeak, memoryMb } from "../../bench/process-usage.ts";
import { everythingEdit, type SceneShape, sceneFiles, sceneProxies } from "../../bench/scene.ts";
import { systemClock } from "../../src/base/clock.ts";
import { startIstiod } from "../support/istiod.ts";
import { memoryCgroup, whyNoMemoryCgroup } from "../support/memory-cgroup.ts";
import { areServed, openFleet } from "../support/served-fleet.ts";
import { eventually } from "../support/wait.ts";

/*
 * The system kills a process that goes beyond its memory, and proxies come for which there is not enough of it, while others do not read.
 */

const MB = 1024 * 1024;
const FRIENDS = 5;
const DEAF = 40;
/** With all of them the process would have 100 MB more than it may. */
const HERD = 2_000;
/** Many namespaces, so that little is shared and each proxy that comes takes some of the rest. */
const CLASSES = 200;
const SHAPE: SceneShape = {
  ...{ services: 200, endpoints: 2, virtualServices: 200, destinationRules: 20 },
  ...{ namespaces: CLASSES, proxies: FRIENDS + DEAF + HERD, classes: CLASSES },
};
/** A client with a window this small leaves what it does not read with the server. */
const SMALL_WINDOW = 65_535;
/** What may be used beyond what is used when the herd comes. */
const SPARE_MB = 45;
/** What is resident counts the program's own file, which belongs to whoever read it first: the system may count less than we do. */
const SHARED_MB = 50;
/** How often those who read are sent something while memory is short: some seconds, in which a process that lets everybody in has gone beyond the limit. */
const CHANGES = 12;
const APART_MS = 700;
const WAIT_MS = 180_000;

const why = whyNoMemoryCgroup();
if (why !== undefined) process.stdout.write(`a hard limit of memory is not tried: ${why}\n`);

describe.skipIf(why !== undefined)("a control plane that is killed if it takes more memory", () => {
  it("takes no more: it lets go of those that do not read, keeps a herd waiting, and serves the others", async () => {
    const cgroup = memoryCgroup();
    const istiod = await startIstiod({ cgroup: cgroup.dir, files: Object.fromEntries(sceneFiles(SHAPE)) });
    const [friends, deaf, herd] = [openFleet(istiod), openFleet(istiod, { window: SMALL_WINDOW }), openFleet(istiod, { comesAgain: true })];
    const proxies = sceneProxies(SHAPE);
    await friends.connect(proxies.slice(0, FRIENDS));
    await deaf.connect(proxies.slice(FRIENDS, FRIENDS + DEAF));
    deaf.stall();
    const pid = istiod.pid();
    forgetPeak(pid);
    const limitMb = Math.round(memoryMb(pid).rss) + SPARE_MB;
    cgroup.limit(limitMb * MB);
    await eventually("it knows of the limit", async () => (await istiod.metric("istiod_memory_limit_bytes")) === limitMb * MB);

    const { file, text } = everythingEdit(1);
    await istiod.write(file, text);
    const coming = herd.connect(proxies.slice(FRIENDS + DEAF)).catch(() => {}); // Some are let in and then found not to read.
    await eventually("some that do not read are cut", async () => (await istiod.metric("istiod_xds_shed_total")) > 0);
    for (let step = 1; step <= CHANGES; step += 1) {
      await areServed(istiod, friends, step);
      await systemClock.sleep(APART_MS);
    }
    assert.ok(herd.served < HERD / 2, `${herd.served} of ${HERD} were let in`);
    assert.ok(memoryMb(pid).peak <= limitMb + SHARED_MB, `${memoryMb(pid).peak} MB of ${limitMb}`);

    herd.close();
    await coming;
    cgroup.limit(limitMb * 10 * MB);
    await eventually("there is room again", () => istiod.log().includes("there is enough memory again"), WAIT_MS);
    await openFleet(istiod).connect(proxies.slice(-FRIENDS));
    await areServed(istiod, friends, CHANGES + 1);
  });
});
