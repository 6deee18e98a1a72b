import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { tempDir } from "../support/cleanup.ts";
import { httpEcho } from "../support/echo.ts";
import { runIstiod, startIstiod } from "../support/istiod.ts";
import { freePort } from "../support/ports.ts";

describe("a control plane that cannot start", () => {
  const PORTS = ["GRPC_ADDR", "SECURE_GRPC_ADDR", "HTTPS_ADDR", "HTTP_ADDR", "MONITORING_ADDR"];
  it.for(PORTS)("names the address that another program has, and what to do (%s)", async (name) => {
    const address = `127.0.0.1:${(await httpEcho("other")).port}`;
    const { status, log } = await runIstiod({ env: { [name]: address } });
    expect(status).toBe(1);
    expect(log).toContain(
      `istiod: ${address} is taken by another program (stop the other program, or choose another address under \`listen\` in mesh.yaml)\n`,
    );
  });

  it("sends nobody to a file where a variable is wrong", async () => {
    const { status, log } = await runIstiod({ env: { MONITORING_ADDR: "15014" } });
    expect([status, log]).toEqual([
      1,
      expect.stringMatching(/^istiod: environment variable MONITORING_ADDR: .*\(correct or unset it; .*\)\n$/),
    ]);
  });

  it("says where it cannot write, and what to do", async () => {
    const home = await tempDir();
    await writeFile(join(home, "var"), "no directory");
    await mkdir(join(home, "etc"));
    const { status, log } = await runIstiod({ home });
    expect(status).toBe(1);
    expect(log.trim().split("\n").at(-1)).toMatch(
      /^istiod: nothing can be kept in \S+\/var\/lib\/istio: .*\(let this user write there, or set ISTIO_HOME to a directory where it may\)$/,
    );
  });
});

describe("a control plane of a test", () => {
  it.for([0, 2])("takes other ports where one of its own was taken before it could listen (number %s)", async (index) => {
    const taken = (await httpEcho("other")).port;
    let found = 0;
    const istiod = await startIstiod({ findPort: async () => (found++ === index ? taken : freePort()) });
    expect(found).toBe(8);
    expect((await istiod.debug("/debug/list")).status).toBe(200);
  });
});
