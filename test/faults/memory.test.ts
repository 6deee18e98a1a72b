import assert from "node:assert/strict";
import { describe, it } from "vitest";
import { memoryMb } from "../../bench/process-usage.ts";
import { type SceneShape, sceneFiles, sceneProxies } from "../../bench/scene.ts";
import { type Istiod, startIstiod } from "../support/istiod.ts";
import { areServed, openFleet } from "../support/served-fleet.ts";
import { eventually } from "../support/wait.ts";

/*
 * There is less memory than is needed. The limit is set while the process runs, below what it uses, and back.
 */

const MB = 1024 * 1024;
const FRIENDS = 5;
const DEAF = 20;
const ALL = FRIENDS + DEAF;
/** Every proxy is of a namespace of its own, so little is shared. */
const SHAPE: SceneShape = {
  ...{ services: 200, endpoints: 2, virtualServices: 200, destinationRules: 20 },
  ...{ namespaces: ALL, proxies: ALL, classes: ALL },
};
/** A client with a window this small leaves what it does not read with the server. */
const SMALL_WINDOW = 65_535;

interface Check {
  readonly name: string;
  readonly ok: boolean;
  readonly detail: string;
}

async function memoryCheck({ httpPort }: Istiod): Promise<Check> {
  const { checks } = (await (await fetch(`http://127.0.0.1:${httpPort}/ready?verbose`)).json()) as { readonly checks: readonly Check[] };
  return checks.find(({ name }) => name === "memory") ?? assert.fail("memory is not among the checks");
}

/** Lets the process use so many times what it uses now. */
async function limitTo(istiod: Istiod, factor: number): Promise<void> {
  const bytes = Math.round(memoryMb(istiod.pid()).rss * MB * factor);
  await istiod.write("mesh.yaml", `connectTimeout: 12s\nenv: {ISTIO_MEMORY_LIMIT_BYTES: "${bytes}"}\n`);
}

describe("a control plane with little memory", () => {
  it("cuts those that do not read, turns away those who come, says so, and serves the others; all is as before when there is more", async () => {
    const istiod = await startIstiod({ files: Object.fromEntries(sceneFiles(SHAPE)) });
    const [friends, deaf] = [openFleet(istiod), openFleet(istiod, { window: SMALL_WINDOW })];
    const proxies = sceneProxies(SHAPE);
    await friends.connect(proxies.slice(0, FRIENDS));
    await deaf.connect(proxies.slice(FRIENDS));
    deaf.stall();
    await limitTo(istiod, 0.7); // Which changes every cluster too, so that there is much to send.
    await eventually("all that do not read are cut", async () => (await istiod.metric("istiod_xds_shed_total")) === DEAF, WAIT_MS);
    await eventually("the others have all that was sent", async () => (await istiod.metric("istiod_xds_unsent_bytes")) === 0);
    await areServed(istiod, friends, 1);
    const { ok, detail } = await memoryCheck(istiod);
    assert.ok(!ok && /no proxies are let in/.test(detail), detail);
    await assert.rejects(openFleet(istiod).connect(proxies.slice(-1)), /memory is short here; try again later/);

    await limitTo(istiod, 10);
    await eventually("there is room again", async () => (await memoryCheck(istiod)).ok, WAIT_MS);
    await openFleet(istiod).connect(proxies.slice(-DEAF));
    await areServed(istiod, friends, 2);
  });
});

const WAIT_MS = 180_000;
