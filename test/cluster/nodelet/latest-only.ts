/** Runs something after changes, once for those that come while it runs. */
export function latestOnly(run: () => Promise<void>): () => void {
  let [running, again] = [false, false];
  const loop = async (): Promise<void> => {
    running = true;
    for (again = true; again; ) {
      again = false;
      await run();
    }
    running = false;
  };
  return () => {
    again = true;
    if (!running) void loop();
  };
}
