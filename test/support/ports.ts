import { createServer } from "node:net";

/** Ports below the ephemeral range, so that no client socket of the kernel's takes one between being found and being used. */
const FIRST = 20_000;
const LAST = 32_000;
let next = FIRST + (process.pid % 60) * 200;

/** A TCP port that is free on loopback now. */
export async function freePort(host = "127.0.0.1"): Promise<number> {
  for (let tries = 0; tries < 2_000; tries++) {
    next = next >= LAST ? FIRST : next + 1;
    const port = next; // Others may ask meanwhile.
    if (await isFree(port, host)) return port;
  }
  throw new Error("no free port found");
}

function isFree(port: number, host: string): Promise<boolean> {
  return new Promise((resolve) => {
    const server = createServer();
    server.once("error", () => resolve(false));
    server.listen(port, host, () => server.close(() => resolve(true)));
  });
}
