import assert from "node:assert/strict";
import { onTestFinished } from "vitest";
import { Fleet, type FleetOptions, reachesAll } from "../../bench/fleet.ts";
import { endpointEdit } from "../../bench/scene.ts";
import type { Istiod } from "./istiod.ts";

/** Many clients of a control plane, until the test ends. */
export function openFleet({ grpcPort }: Istiod, options: FleetOptions = {}): Fleet {
  const fleet = new Fleet(grpcPort, options);
  onTestFinished(() => fleet.close());
  return fleet;
}

/** Makes a change of one endpoint and holds that it reaches all of them. Each `step` is another change. */
export async function areServed(istiod: Istiod, friends: Fleet, step: number): Promise<void> {
  const edit = endpointEdit(step);
  const { touched } = await friends.observe(() => istiod.write(edit.file, edit.text), reachesAll(edit));
  assert.equal(touched, friends.size);
}
