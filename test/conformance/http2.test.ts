import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import { type AddressInfo, createServer } from "node:net";
import { homedir } from "node:os";
import { join } from "node:path";
import { describe, it } from "vitest";
import { systemClock } from "../../src/base/clock.ts";
import { headerBlock } from "../../src/wire/http2/hpack.ts";
import { ServerSession } from "../../src/wire/http2/server-session.ts";
import type { ServerStream } from "../../src/wire/http2/server-stream.ts";

const H2SPEC = join(process.env.XDG_CACHE_HOME || join(homedir(), ".cache"), "istio-ts/h2spec-2.2.1/h2spec");
const missing = existsSync(H2SPEC) ? undefined : `no ${H2SPEC}; run \`node tools/setup.mjs h2spec\` (needs Go 1.24 or newer)`;

const OK = headerBlock([[":status", "200"]]);
const END = headerBlock([["x-end", "yes"]]);

/** Answers every request, when all of it has come, as a server of pages would. */
function answer(stream: ServerStream): void {
  stream.listen({
    content() {},
    finished() {
      stream.respond(OK);
      stream.write([Buffer.from("hello")], () => {});
      stream.end(END, () => {});
    },
    closed() {},
  });
}

describe("HTTP/2", () => {
  it.skipIf(missing !== undefined)(`passes all of h2spec${missing === undefined ? "" : ` (${missing})`}`, async () => {
    const server = createServer((socket) => {
      void new ServerSession(socket, { maxStreams: 100, clock: systemClock, pace: undefined, opened: answer, failed() {}, closed() {} });
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    const { port } = server.address() as AddressInfo;
    try {
      const report = await new Promise<string>((resolve) => {
        // It waits so long for what is to follow; a busy machine needs more than the second it would wait by itself.
        execFile(H2SPEC, ["-h", "127.0.0.1", "-p", String(port), "-o", "10"], (_error, stdout) => resolve(stdout));
      });
      assert.match(report, /145 tests, 145 passed, 0 skipped, 0 failed/, report.slice(report.indexOf("Failures:")));
    } finally {
      server.close();
    }
  });
});
