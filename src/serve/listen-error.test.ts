import { createServer } from "node:net";
import { assert, describe, it, onTestFinished } from "vitest";
import { freePort } from "../../test/support/ports.ts";
import { startDnsServer } from "../agent/dns/dns-server.ts";
import { startStatusServer } from "../agent/status-server.ts";
import { systemClock } from "../base/clock.ts";
import { EdgeError } from "../base/errors.ts";
import { listenError } from "../base/listen-error.ts";
import { silentLog } from "../base/log.ts";
import { openEarly } from "./early-ports.ts";
import { listenHttp } from "./http-server.ts";

const LISTEN = "address under `listen` in mesh.yaml";

const OPENERS = {
  "for pages": {
    open: (host: string, port: number) =>
      listenHttp({ host, port, routes: [], debugToken: "", allowedHosts: [], clock: systemClock, log: silentLog }),
    setting: LISTEN,
  },
  "for proxies": { open: (host: string, port: number) => openEarly([`${host}:${port}`], systemClock), setting: LISTEN },
  "for names": {
    open: (host: string, port: number) =>
      startDnsServer({ addresses: [host], port, resolve: () => assert.fail("nobody asks"), log: silentLog }),
    setting: "address for names in DNS_PROXY_ADDR, or switch ISTIO_META_DNS_CAPTURE off",
  },
};

const faultOf = async (opening: Promise<unknown>): Promise<EdgeError> =>
  opening.then(
    () => assert.fail("the port was opened"),
    (error) => (error instanceof EdgeError ? error : assert.fail(String(error))),
  );

async function takenPort(): Promise<number> {
  const port = await freePort();
  const other = createServer();
  await new Promise<void>((resolve) => other.listen(port, resolve));
  onTestFinished(() => void other.close());
  return port;
}

describe("a port that cannot be had", () => {
  for (const [who, { open, setting }] of Object.entries(OPENERS)) {
    it(`${who}: is named with what to do where another program has it`, async () => {
      const port = await takenPort();
      const { message, hint } = await faultOf(open("127.0.0.1", port));
      assert.equal(message, `127.0.0.1:${port} is taken by another program`);
      assert.equal(hint, `stop the other program, or choose another ${setting}`);
    });

    it(`${who}: sends nobody after another program where the address is not this machine's`, async () => {
      const { message, hint } = await faultOf(open("192.0.2.1", 15_010));
      assert.include(message, "cannot listen on 192.0.2.1:15010: ");
      assert.equal(hint, `it is no address of this machine: choose another ${setting}`);
    });
  }

  it("for the agent's own pages: is named with what to do", async () => {
    const port = await takenPort();
    const { message, hint } = await faultOf(startStatusServer(port, [], silentLog));
    assert.equal(message, `port ${port} is taken by another program`);
    assert.equal(hint, "stop the other program, or choose another statusPort in PROXY_CONFIG");
  });

  it("says how to have a low port", () => {
    const cause = Object.assign(new Error("listen EACCES: permission denied 0.0.0.0:80"), { code: "EACCES" });
    assert.include(listenError("0.0.0.0:80", cause).hint, "CAP_NET_BIND_SERVICE");
  });
});
