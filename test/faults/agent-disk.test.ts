import { execFileSync } from "node:child_process";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it, onTestFinished } from "vitest";
import { startAgentMesh } from "../support/agent-mesh.ts";
import { call, tally } from "../support/calls.ts";
import { tempDir } from "../support/cleanup.ts";
import { eventually } from "../support/wait.ts";

const canMount = process.getuid?.() === 0;
if (!canMount) process.stdout.write("a full disk is not tried: mounting a small file system needs root\n");

/** A directory on a disk of its own, of a few megabytes. */
async function smallDisk(): Promise<string> {
  const disk = await tempDir();
  execFileSync("mount", ["-t", "tmpfs", "-o", "size=8m", "small", disk]);
  onTestFinished(() => void execFileSync("umount", ["-l", disk]));
  return disk;
}

/** Writes until nothing more can be. */
function fill(disk: string): void {
  for (const size of [65_536, 512, 1]) {
    try {
      for (let count = 0; ; count++) writeFileSync(join(disk, `filler-${size}-${count}`), Buffer.alloc(size, 1));
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "ENOSPC") throw error;
    }
  }
}

/** Routes that take more room than is left in any block. */
const teapot = (status: number): string =>
  `{apiVersion: networking.istio.io/v1, kind: VirtualService, metadata: {name: cart, namespace: shop}, spec: {hosts: [cart], http: [{match: [{uri: {prefix: /tea}}], directResponse: {status: ${status}, body: {string: "${"x".repeat(20_000)}"}}}, {route: [{destination: {host: cart}}]}]}}\n`;

describe.skipIf(!canMount)("an agent whose disk is full", () => {
  it("says so, goes on telling Envoy of changes, and starts it again with the latest when it crashes", async () => {
    const disk = await smallDisk();
    const { client, target, istiod } = await startAgentMesh({ clientHome: disk });
    expect(await tally(5, target)).toEqual({ cart: 5 });
    fill(disk);
    await istiod.write("conf/more.yaml", teapot(418));
    await eventually("a change arrives", async () => (await call({ ...target, path: "/tea" })).status === 418);
    await eventually("the full disk is reported", () => /ENOSPC|no space left/.test(client.log()));
    const before = await client.envoyPid();
    process.kill(before, "SIGKILL");
    await eventually("another Envoy serves", async () => (await call({ ...target, path: "/tea" })).status === 418);
    expect(await tally(5, target)).toEqual({ cart: 5 });
    await istiod.write("conf/more.yaml", teapot(429));
    await eventually("changes still arrive", async () => (await call({ ...target, path: "/tea" })).status === 429);

    // What could not be put on disk is known all the same.
    await istiod.stop("SIGKILL");
    process.kill(await client.envoyPid(), "SIGKILL");
    await eventually("the latest is served without a control plane", async () => (await call({ ...target, path: "/tea" })).status === 429);
    expect(await tally(5, target)).toEqual({ cart: 5 });
  });
});
