// Bundles the programs of src/bin into dist/: one file each starts in a fraction of the time and memory of hundreds of small ones.
import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, readdirSync, renameSync, rmSync } from "node:fs";
import { join } from "node:path";

const BANNER = 'import { createRequire as __createRequire } from "node:module"; const require = __createRequire(import.meta.url);';

/** Writes `dist/<program>.mjs` for each file of src/bin; a failed build leaves the previous bundles in place. */
export function bundle(root) {
  const out = join(root, ".cache/dist");
  rmSync(out, { recursive: true, force: true });
  const entries = readdirSync(join(root, "src/bin")).filter((name) => name.endsWith(".ts") && !name.endsWith(".test.ts"));
  const options = [
    "--bundle",
    "--platform=node",
    "--format=esm",
    "--target=node24",
    "--splitting",
    "--sourcemap",
    "--log-level=warning",
    "--out-extension:.js=.mjs",
    "--legal-comments=none",
    "--minify-whitespace",
    "--minify-syntax",
    `--banner:js=${BANNER}`,
    "--metafile=.cache/dist/meta.json",
  ];
  execFileSync(
    join(root, "node_modules/.bin/esbuild"),
    [...entries.map((name) => join("src/bin", name)), ...options, "--outdir=.cache/dist"],
    { cwd: root, stdio: ["ignore", 2, 2] },
  );
  mkdirSync(join(root, "dist"), { recursive: true });
  const old = join(root, ".cache/dist-old");
  rmSync(old, { recursive: true, force: true });
  if (existsSync(join(root, "dist"))) renameSync(join(root, "dist"), old);
  renameSync(out, join(root, "dist"));
  rmSync(old, { recursive: true, force: true });
}
