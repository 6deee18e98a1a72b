import { networkInterfaces } from "node:os";
import { expect, it, onTestFinished } from "vitest";
import { silentLog } from "../base/log.ts";
import { startStatusServer } from "./status-server.ts";

const address = Object.values(networkInterfaces())
  .flatMap((list) => list ?? [])
  .find(({ internal, family }) => !internal && family === "IPv4")?.address;

it.skipIf(address === undefined)("pages for this machine are for nobody else (skipped where it has no address but loopback)", async () => {
  const handle: Parameters<typeof startStatusServer>[1][number]["handle"] = (_, response) => void response.end("done");
  const routes = [{ path: "/quitquitquit", method: "POST", local: true, handle } as const, { path: "/healthz/ready", handle } as const];
  const server = await startStatusServer(0, routes, silentLog);
  onTestFinished(() => server.close());
  const ask = async (host: string, path: string, method: string): Promise<number> =>
    (await fetch(`http://${host}:${server.port}${path}`, { method })).status;
  expect(await ask("127.0.0.1", "/quitquitquit", "POST")).toBe(200);
  expect(await ask("[::1]", "/quitquitquit", "POST")).toBe(200);
  expect(await ask(address ?? "", "/quitquitquit", "POST")).toBe(403);
  expect(await ask("127.0.0.1", "/quitquitquit", "GET")).toBe(405);
  expect(await ask(address ?? "", "/healthz/ready", "GET")).toBe(200);
});
