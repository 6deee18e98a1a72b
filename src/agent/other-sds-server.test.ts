import { createServer } from "node:net";
import { join } from "node:path";
import { expect, it, onTestFinished } from "vitest";
import { tempDir } from "../../test/support/cleanup.ts";
import { manualClock } from "../../test/support/manual-clock.ts";
import { silentLog } from "../base/log.ts";
import type { AgentConfig } from "./agent-config.ts";
import { hasOtherServer } from "./other-sds-server.ts";

async function rig(identitySocket: string) {
  const sdsSocket = join(await tempDir(), "there");
  const clock = manualClock();
  const config = { settings: { identitySocket }, paths: { sdsSocket } } as Pick<AgentConfig, "settings" | "paths">;
  const found = hasOtherServer(config, clock, silentLog).then(
    (answer) => answer,
    (error: unknown) => String(error),
  );
  let over = false;
  void found.then(() => (over = true));
  return {
    found,
    isOver: () => over,
    /** Lets so many looks happen. */
    async look(times: number) {
      for (let time = 0; time < times && !over; time++) {
        await expect.poll(() => clock.waiting > 0 || over).toBe(true);
        clock.advance(250);
      }
    },
    async serve() {
      const server = createServer().listen(sdsSocket);
      await new Promise((resolve) => server.once("listening", resolve));
      onTestFinished(() => void server.close());
    },
  };
}

it("nobody need be there under the agent's own name", async () => {
  expect(await (await rig("socket")).found).toBe(false);
});

it("one with a name of its own is waited for, and found when it comes", async () => {
  const { found, isOver, look, serve } = await rig("spire.sock");
  await look(3);
  expect(isOver()).toBe(false);
  await serve();
  await look(2);
  expect(await found).toBe(true);
});

it("one that does not come is a fault in one sentence, and so is a path in place of a name", async () => {
  const { found, look } = await rig("spire.sock");
  await look(60);
  expect(await found).toMatch(/^EdgeError: nobody serves certificates on .*there, which WORKLOAD_IDENTITY_SOCKET_FILE names$/);
  expect(await (await rig("../spire.sock")).found).toMatch(/is a path$/);
});
