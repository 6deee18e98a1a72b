import assert from "node:assert/strict";
import { mkdir, writeFile } from "node:fs/promises";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { describe, it, onTestFinished } from "vitest";
import { systemClock } from "../../src/base/clock.ts";
import { silentLog } from "../../src/base/log.ts";
import { ensureDebugToken } from "../../src/serve/debug-token.ts";
import { type HttpRoute, listenHttp } from "../../src/serve/http-server.ts";
import { tempDir } from "../support/cleanup.ts";
import { freePort } from "../support/ports.ts";
import { istioctl } from "./cli-host.ts";

/** A control plane with two pages, and the base directory it runs in. */
async function running(): Promise<{ readonly home: string; readonly address: string }> {
  const home = await tempDir();
  const page = (path: string, open: boolean, body: unknown): HttpRoute => ({
    path,
    open,
    about: "",
    answer: () => ({ status: 200, body }),
  });
  const server = await listenHttp({
    host: "127.0.0.1",
    port: 0,
    routes: [page("/version", true, { version: "1.2.3", istio: "1.32.0" }), page("/debug/syncz", false, [])],
    debugToken: await ensureDebugToken(home),
    allowedHosts: [],
    clock: systemClock,
    log: silentLog,
  });
  onTestFinished(() => void server.close());
  return { home, address: `127.0.0.1:${(server.address() as AddressInfo).port}` };
}

async function writeMesh(home: string, text: string): Promise<void> {
  await mkdir(join(home, "etc/istio"), { recursive: true });
  await writeFile(join(home, "etc/istio/mesh.yaml"), text);
}

describe("istioctl finds istiod", () => {
  it("where --istiod or ISTIOD_DEBUG_ADDRESS says, with the token under ISTIO_HOME", async () => {
    const { home, address } = await running();
    const byFlag = await istioctl(["ps", "--istiod", `http://${address}`], { env: { ISTIO_HOME: home } });
    assert.deepEqual(byFlag, { status: 0, out: "no proxy is connected\n", err: "" });
    assert.deepEqual(await istioctl(["ps"], { env: { ISTIO_HOME: home, ISTIOD_DEBUG_ADDRESS: address } }), byFlag);
  });

  it("where mesh.yaml says, even while that is broken otherwise", async () => {
    const { home, address } = await running();
    for (const more of ["", "accessLogFil: broken\n"]) {
      await writeMesh(home, `listen: {httpAddr: "${address}"}\n${more}`);
      assert.equal((await istioctl(["ps"], { cwd: home })).status, 0, more);
    }
  });

  it("and takes the token from --token-file", async () => {
    const { home, address } = await running();
    const elsewhere = { env: { ISTIOD_DEBUG_ADDRESS: address }, cwd: await tempDir() };
    const without = await istioctl(["ps"], elsewhere);
    assert.equal(without.status, 1);
    assert.match(without.err, /wants its debug token, and there is no token in .*debug\.token; run istioctl with the ISTIO_HOME of istiod/);
    assert.equal((await istioctl(["ps", "--token-file", join(home, "var/lib/istio/debug.token")], elsewhere)).status, 0);
    const missing = await istioctl(["ps", "--token-file", "nowhere"], elsewhere);
    assert.match(missing.err, /token file .*nowhere cannot be read/);
  });

  it("and never shows what is in a file that holds no token", async () => {
    const { home, address } = await running();
    await writeFile(join(home, "secrets"), "hunter2\nhunter3\n");
    const wrong = await istioctl(["ps", "--istiod", address, "--token-file", "secrets"], { cwd: home });
    assert.equal(wrong.status, 1);
    assert.match(wrong.err, /^istioctl: what is in .*secrets is no token[^\n]*\n$/);
    assert.doesNotMatch(wrong.err, /hunter/);
  });

  it("or says in one sentence what was tried and what to do", async () => {
    const address = `http://127.0.0.1:${await freePort()}`;
    const { status, out, err } = await istioctl(["ps"], { env: { ISTIOD_DEBUG_ADDRESS: address } });
    assert.equal(status, 1);
    assert.equal(out, "");
    assert.equal(
      err,
      `istioctl: cannot reach istiod at ${address} (connection refused); start it with \`istiod\`, or name its address with --istiod or ISTIOD_DEBUG_ADDRESS\n`,
    );
  });

  it("passes on what istiod says of a page it does not have", async () => {
    const { home, address } = await running();
    const { status, err } = await istioctl(["pc", "cluster", "web.shop"], { env: { ISTIO_HOME: home, ISTIOD_DEBUG_ADDRESS: address } });
    assert.equal(status, 1);
    assert.match(err, /says: no such page: \/debug\/config_dump/);
  });
});

describe("istioctl version", () => {
  it("tells the client's, the control plane's and the proxies' versions", async () => {
    const { home, address } = await running();
    const { status, out } = await istioctl(["version", "-o", "json"], { env: { ISTIO_HOME: home, ISTIOD_DEBUG_ADDRESS: address } });
    assert.equal(status, 0);
    assert.deepEqual(JSON.parse(out), {
      clientVersion: { version: "9.8.7", istio: "1.32.0" },
      meshVersion: { version: "1.2.3", istio: "1.32.0" },
      dataPlaneVersion: [],
    });
  });

  it("answers without a control plane too", async () => {
    const { status, out } = await istioctl(["version"], { env: { ISTIOD_DEBUG_ADDRESS: `127.0.0.1:${await freePort()}` } });
    assert.equal(status, 0);
    assert.match(out, /^client version: 9\.8\.7 \(Istio API 1\.32\.0\)\ncontrol plane version: unknown, cannot reach istiod/);
    assert.equal((await istioctl(["version", "--short"])).out, "9.8.7\n");
    assert.equal((await istioctl(["version", "--remote=false"])).out, "client version: 9.8.7 (Istio API 1.32.0)\n");
  });
});
