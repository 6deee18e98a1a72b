import assert from "node:assert/strict";
import { describe, it, onTestFinished } from "vitest";
import { Fleet, reachesAll } from "../../bench/fleet.ts";
import { forgetPeak, memoryMb } from "../../bench/process-usage.ts";
import { endpointEdit, sceneFiles, sceneProxies } from "../../bench/scene.ts";
import { startIstiod } from "../support/istiod.ts";
import { eventually } from "../support/wait.ts";

/*
 * Another replica went away, and all its proxies come at once.
 */

const OLD = 40;
const HERD = 1_500;
const SHAPE = { services: 60, endpoints: 3, virtualServices: 10, destinationRules: 10, namespaces: 10, proxies: OLD + HERD, classes: 10 };
/** A stream with its connection; what it is sent is shared. */
const MOST_KB_EACH = 150;

describe("a herd of proxies", () => {
  it("is let in as fast as it can be served: those who are there go on being served, memory stays bounded, and nobody is turned away", async () => {
    const istiod = await startIstiod({ files: Object.fromEntries(sceneFiles(SHAPE)) });
    const [there, herd] = [new Fleet(istiod.grpcPort), new Fleet(istiod.grpcPort)];
    onTestFinished(() => {
      for (const fleet of [there, herd]) fleet.close();
    });
    const proxies = sceneProxies(SHAPE);
    await there.connect(proxies.slice(0, OLD));
    forgetPeak(istiod.pid());
    const { rss } = memoryMb(istiod.pid());

    const coming = herd.connect(proxies.slice(OLD));
    await eventually("most of the herd waits", async () => (await istiod.metric("istiod_xds_waiting")) > HERD / 2);
    const edit = endpointEdit(1);
    const { touched } = await there.observe(() => istiod.write(edit.file, edit.text), reachesAll(edit), 0);
    assert.equal(touched, OLD);
    assert.ok(herd.served < HERD, "the change waited for the whole herd");

    await coming;
    assert.equal(await istiod.metric("pilot_xds"), OLD + HERD);
    assert.equal(await istiod.metric("istiod_xds_waiting"), 0);
    assert.equal(await istiod.metric("istiod_xds_turned_away_total"), 0);
    const grownKb = (memoryMb(istiod.pid()).peak - rss) * 1024;
    assert.ok(grownKb / HERD < MOST_KB_EACH, `${Math.round(grownKb / HERD)} KB for each`);
  });
});
