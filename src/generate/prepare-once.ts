import type { Engine } from "../engine/index.ts";

/**
 * Runs the steps of a preparation once per change: the streams of a class share what is prepared, so walking every key again for each
 * of them would cost more than sending them the difference. `about` is the shared object that the steps are made from.
 */
export function definePrepareOnce(engine: Pick<Engine, "revision">): (about: object, steps: () => Iterable<void>) => Iterable<void> {
  const prepared = new WeakMap<object, number>();
  return function* (about, steps) {
    if (prepared.get(about) === engine.revision) return;
    const { revision } = engine;
    yield* steps();
    prepared.set(about, revision);
  };
}
