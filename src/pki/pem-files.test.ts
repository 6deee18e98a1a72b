import { mkdir, rename, rm, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, it, onTestFinished } from "vitest";
import { tempDir } from "../../test/support/cleanup.ts";
import { manualClock } from "../../test/support/manual-clock.ts";
import { holds } from "../../test/support/wait.ts";
import { followPemFiles, readPemFiles } from "./pem-files.ts";

const NAMES = ["cert.pem", "key.pem"];

/** Follows the files of a new directory, and says what is found now: at each call a second has passed. */
async function followed(): Promise<{ directory: string; find: (expected: Record<string, string>) => Promise<unknown> }> {
  const directory = await tempDir();
  const clock = manualClock();
  let texts: Record<string, string> = {};
  const stop = followPemFiles({
    ...{ directory, names: NAMES, clock, since: await readPemFiles(directory, NAMES) },
    changed(files) {
      texts = Object.fromEntries([...files.texts].map(([name, text]) => [name, text.reveal()]));
    },
  });
  onTestFinished(stop);
  return {
    directory,
    find: (expected) =>
      holds(() => {
        clock.advance(1_000);
        expect(texts).toEqual(expected);
      }),
  };
}

describe("followed files", () => {
  it("are found again when they come, are written in place at the same length, and go", async () => {
    const { directory, find } = await followed();
    await writeFile(join(directory, "cert.pem"), "one");
    await writeFile(join(directory, "key.pem"), "key");
    await find({ "cert.pem": "one", "key.pem": "key" });
    for (const text of ["two", "six", "ten"]) {
      await find({ "cert.pem": expect.any(String), "key.pem": "key" });
      await writeFile(join(directory, "cert.pem"), text);
      await find({ "cert.pem": text, "key.pem": "key" });
    }
    await rm(join(directory, "key.pem"));
    await find({ "cert.pem": "ten" });
  });

  it("are found again when the link behind which they are leads elsewhere, as with mounted secrets", async () => {
    const { directory, find } = await followed();
    for (const version of ["1", "2"]) {
      await mkdir(join(directory, version));
      await writeFile(join(directory, version, "cert.pem"), version);
    }
    await symlink("1", join(directory, "data"));
    await symlink("data/cert.pem", join(directory, "cert.pem"));
    await find({ "cert.pem": "1" });
    await symlink("2", join(directory, "data.new"));
    await rename(join(directory, "data.new"), join(directory, "data"));
    await find({ "cert.pem": "2" });
  });
});
