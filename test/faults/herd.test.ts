import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
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

const ESTABLISHED = "01";

/** Connections to a port of this machine, as their clients see them: the system takes them for a process that is not there to. */
function connectionsTo(port: number): number {
  const hex = port.toString(16).toUpperCase().padStart(4, "0");
  const rows = readFileSync("/proc/net/tcp", "utf8").split("\n");
  return rows
    .map((row) => row.trim().split(/\s+/))
    .filter(([, , remote = "", state]) => remote.endsWith(`:${hex}`) && state === ESTABLISHED).length;
}

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

    // However slow the machine is that the clients run on, they are all there when the first of them is looked at, and so is the change.
    process.kill(istiod.pid(), "SIGSTOP");
    const coming = herd.connect(proxies.slice(OLD));
    await eventually("the herd is connected", () => connectionsTo(istiod.grpcPort) >= OLD + HERD);
    const edit = endpointEdit(1);
    const change = async (): Promise<void> => {
      await istiod.write(edit.file, edit.text);
      process.kill(istiod.pid(), "SIGCONT");
    };
    const { touched } = await there.observe(change, reachesAll(edit), 0);
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
