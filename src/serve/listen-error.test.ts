import { createServer } from "node:net";
import { assert, describe, it, onTestFinished } from "vitest";
import { freePort } from "../../test/support/ports.ts";
import { systemClock } from "../base/clock.ts";
import { EdgeError } from "../base/errors.ts";
import { silentLog } from "../base/log.ts";
import { openEarly } from "./early-ports.ts";
import { listenHttp } from "./http-server.ts";
import { listenError } from "./listen-error.ts";

const OPENERS = {
  "for pages": (host: string, port: number) => listenHttp({ host, port, routes: [], debugToken: "", allowedHosts: [], log: silentLog }),
  "for proxies": (host: string, port: number) => openEarly([`${host}:${port}`], systemClock),
};

const faultOf = async (opening: Promise<unknown>): Promise<EdgeError> =>
  opening.then(
    () => assert.fail("the port was opened"),
    (error) => (error instanceof EdgeError ? error : assert.fail(String(error))),
  );

describe("a port that cannot be had", () => {
  for (const [who, open] of Object.entries(OPENERS)) {
    it(`${who}: is named with what to do where another program has it`, async () => {
      const port = await freePort();
      const other = createServer();
      await new Promise<void>((resolve) => other.listen(port, "127.0.0.1", resolve));
      onTestFinished(() => void other.close());
      const { message, hint } = await faultOf(open("127.0.0.1", port));
      assert.equal(message, `127.0.0.1:${port} is taken by another program`);
      assert.equal(hint, "stop the other program, or choose another address under `listen` in mesh.yaml");
    });

    it(`${who}: sends nobody after another program where the address is not this machine's`, async () => {
      const { message, hint } = await faultOf(open("192.0.2.1", 15_010));
      assert.include(message, "cannot listen on 192.0.2.1:15010: ");
      assert.equal(hint, "choose an address of this machine under `listen` in mesh.yaml");
    });
  }

  it("says how to have a low port", () => {
    const cause = Object.assign(new Error("listen EACCES: permission denied 0.0.0.0:80"), { code: "EACCES" });
    assert.include(listenError("0.0.0.0:80", cause).hint, "CAP_NET_BIND_SERVICE");
  });
});
