import { execFileSync } from "node:child_process";
import { mkdirSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it, onTestFinished } from "vitest";
import { examine } from "../../src/agent/doctor/doctor-command.ts";
import { systemClock } from "../../src/base/clock.ts";
import { startAgentProcess } from "../support/agent.ts";
import { startAgentMesh } from "../support/agent-mesh.ts";
import { call, tally } from "../support/calls.ts";
import { tempDir } from "../support/cleanup.ts";
import { rootOf } from "../support/identity.ts";
import { startIstiod } from "../support/istiod.ts";
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

  it("does not use up a token that is good for one certificate where that cannot be kept, and joins when there is room", async () => {
    const disk = await smallDisk();
    const istiod = await startIstiod({ files: {} });
    const body = JSON.stringify({ namespace: "shop", serviceAccount: "cart" });
    const answer = await istiod.debug("/api/workload-token", { method: "POST", headers: { "content-type": "application/json" }, body });
    const { token } = (await answer.json()) as { readonly token: string };
    const machine = { name: "cart", namespace: "shop", serviceAccount: "cart", address: "127.0.0.1", home: disk, wait: false };
    const env = { OUTPUT_CERTS: "etc/certs", ISTIO_META_INTERCEPTION_MODE: "NONE" };
    for (const name of ["var/run/secrets/tokens", "etc/certs"]) mkdirSync(join(disk, name), { recursive: true });
    writeFileSync(join(disk, "var/run/secrets/tokens/istio-token"), token);
    writeFileSync(join(disk, "etc/certs/root-cert.pem"), await rootOf(istiod));
    fill(disk);
    rmSync(join(disk, "filler-65536-0"));
    writeFileSync(join(disk, "filler-rest"), Buffer.alloc(49_152, 1)); // The agent gets as far as asking.
    const agent = await startAgentProcess({ ...machine, istiod: `127.0.0.1:${istiod.securePort}`, env });
    await eventually("it says why it asks for none", () =>
      /there is no room for the certificate in .*make room on that disk/.test(agent.log()),
    );
    expect(await istiod.metric("citadel_server_csr_count")).toBe(0);
    const host = { baseDir: disk, env: {}, type: "sidecar" as const, hostname: "cart", interfaces: [], version: "1.30.0", print() {} };
    const disks = (await examine(host, systemClock)).filter(({ about }) => about === "disk");
    expect(disks).toMatchObject([{ says: expect.stringContaining(`no room left in ${disk}`), fix: "make room on that disk" }]);
    await agent.stop("SIGKILL");
    for (const name of readdirSync(disk)) if (name.startsWith("filler-")) rmSync(join(disk, name));
    agent.start();
    await agent.ready();
    expect(await istiod.metric("citadel_server_success_cert_issuance_count")).toBe(1);
  });
});
