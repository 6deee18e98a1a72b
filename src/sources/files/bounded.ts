/** Runs `work` over all items, `width` at a time. The first failure ends it. */
export async function eachBounded<T>(items: Iterable<T>, width: number, work: (item: T) => Promise<void>): Promise<void> {
  const queue = items[Symbol.iterator]();
  const lane = async (): Promise<void> => {
    for (let next = queue.next(); next.done !== true; next = queue.next()) await work(next.value);
  };
  await Promise.all(Array.from({ length: width }, lane));
}

/** Files and directories looked at at the same time: enough to keep the thread pool busy, few enough to need no descriptors to speak of. */
export const IO_WIDTH = 16;
