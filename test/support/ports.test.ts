import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { it } from "vitest";

const PORTS_OF_A_PROCESS = `
const { freePort } = await import(process.argv[1]);
const ports = [];
for (let count = 0; count < 20; count++) ports.push(await freePort());
console.log(ports.join());
await new Promise((resolve) => process.stdin.once("end", resolve).resume());
`;

it("processes that look for ports at once never find the same", async () => {
  const module = new URL("./ports.ts", import.meta.url).href;
  const found = await Promise.all(Array.from({ length: 4 }, () => portsOfProcess(module)));
  for (const { end } of found) end();
  const ports = found.flatMap((one) => one.ports);
  assert.equal(ports.length, 80);
  assert.equal(new Set(ports).size, 80);
});

interface Found {
  readonly ports: readonly string[];
  readonly end: () => void;
}

/** The process stays until `end`: what it was given is its own as long as it lives. */
async function portsOfProcess(module: string): Promise<Found> {
  const started = promisify(execFile)(process.execPath, ["--input-type=module", "-e", PORTS_OF_A_PROCESS, module]);
  const { child } = started;
  started.catch(() => undefined);
  const line = await new Promise<string>((resolve, reject) => {
    child.stdout?.once("data", (text) => resolve(String(text)));
    child.once("exit", () => reject(new Error("it ended without ports")));
  });
  return { ports: line.trim().split(","), end: () => child.stdin?.end() };
}
