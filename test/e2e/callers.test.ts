import { request } from "node:http";
import { connect } from "node:net";
import { expect, it } from "vitest";
import { startIstiod } from "../support/istiod.ts";
import { freePort } from "../support/ports.ts";

it("open pages are open; the others want the token and a name of this machine", async () => {
  const istiod = await startIstiod();
  const status = (path: string, headers: Record<string, string> = {}): Promise<number> =>
    new Promise((resolve, reject) => {
      request({ host: "127.0.0.1", port: istiod.httpPort, path, headers, agent: false }, (response) => {
        response.resume();
        resolve(response.statusCode ?? 0);
      })
        .on("error", reject)
        .end();
    });
  for (const path of ["/ready", "/version", "/metrics"]) expect([path, await status(path)]).toEqual([path, 200]);
  for (const path of ["/debug/syncz", "/debug/configz", "/debug/config_dump"]) {
    expect([path, await status(path)]).toEqual([path, 401]);
    expect([path, await status(path, { authorization: "Bearer guess" })]).toEqual([path, 401]);
    expect([path, await status(path, { host: "evil.test" })]).toEqual([path, 403]);
  }
  expect((await istiod.debug("/debug/syncz")).status).toBe(200);
});

it("services that are off open no port", async () => {
  const webhooks = await freePort();
  await startIstiod({
    files: { "mesh.yaml": "services: {inject: false, validate: false}\n" },
    env: { HTTPS_ADDR: `127.0.0.1:${webhooks}` },
  });
  const isOpen = (port: number): Promise<boolean> =>
    new Promise((resolve) => {
      const socket = connect(port, "127.0.0.1", () => {
        socket.destroy();
        resolve(true);
      }).on("error", () => resolve(false));
    });
  expect(await isOpen(webhooks)).toBe(false);
});
