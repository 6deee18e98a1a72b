import { createServer, type Server } from "node:net";

/** Ports below the ephemeral range, so that no client socket of the kernel's takes one between being found and being used. */
const FIRST = 20_000;
const BLOCKS = 60;
const PORTS_PER_BLOCK = 200;
/** Who listens on the lock of a block has its ports, until it ends: processes that run at once never find the same port. */
const FIRST_LOCK = FIRST - BLOCKS;

/** Ports of this process. It is kept beside the process, not in this module: every test file has a module of its own. */
interface Block {
  readonly first: number;
  used: number;
}
const BLOCK = Symbol.for("test.ports");
const holder: typeof process & { [BLOCK]?: Promise<Block> } = process;

/** A TCP port that is free on loopback now, and that no other process of the tests is given. */
export async function freePort(host = "127.0.0.1"): Promise<number> {
  holder[BLOCK] ??= claimBlock();
  const block = await holder[BLOCK];
  for (let tries = 0; tries < PORTS_PER_BLOCK; tries++) {
    const port = block.first + (block.used++ % PORTS_PER_BLOCK);
    if (await isFree(port, host)) return port;
  }
  throw new Error(`no free port: all from ${block.first} to ${block.first + PORTS_PER_BLOCK - 1} are in use`);
}

async function claimBlock(): Promise<Block> {
  for (let index = 0; index < BLOCKS; index++) {
    const lock = await listenOn(FIRST_LOCK + index, "127.0.0.1");
    lock?.unref();
    if (lock !== undefined) return { first: FIRST + index * PORTS_PER_BLOCK, used: 0 };
  }
  throw new Error(`no free ports: other processes have all ${BLOCKS} blocks of them`);
}

async function isFree(port: number, host: string): Promise<boolean> {
  const server = await listenOn(port, host);
  if (server === undefined) return false;
  await new Promise((resolve) => server.close(resolve));
  return true;
}

function listenOn(port: number, host: string): Promise<Server | undefined> {
  return new Promise((resolve) => {
    const server = createServer();
    server.once("error", () => resolve(undefined));
    server.listen(port, host, () => resolve(server));
  });
}
