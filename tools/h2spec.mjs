// Compiles h2spec, which tests servers of HTTP/2, for test/conformance/http2.test.ts. It is kept in the cache beside Envoy.
import { execFileSync } from "node:child_process";
import { existsSync, renameSync } from "node:fs";
import { homedir } from "node:os";
import { dirname, join } from "node:path";
import { hasGo, inWorkDir } from "./cluster-programs.mjs";

const VERSION = "2.2.1";

/** Without Go there is nothing to compile with: says so and leaves it away, and the test says so too. */
export function ensureH2spec(root, say) {
  const target = join(process.env.XDG_CACHE_HOME || join(homedir(), ".cache"), "istio-ts", `h2spec-${VERSION}`, "h2spec");
  if (existsSync(target)) return;
  if (!hasGo()) return say("no Go was found (1.24 or newer): the test of HTTP/2 by h2spec will be skipped");
  say(`compiling h2spec ${VERSION} …`);
  inWorkDir(dirname(target), (work) => {
    const out = join(work, "h2spec");
    const flags = ["-trimpath", "-buildvcs=false", "-ldflags", "-s -w", "-o", out];
    try {
      execFileSync("go", ["build", ...flags, "github.com/summerwind/h2spec/cmd/h2spec"], {
        cwd: join(root, "test/conformance/http2"),
        stdio: ["ignore", 2, 2],
        env: { ...process.env, CGO_ENABLED: "0" },
      });
    } catch (cause) {
      throw new Error("Go could not compile h2spec; check that Go is 1.24 or newer and that its module proxy can be reached", { cause });
    }
    renameSync(out, target);
  });
}
