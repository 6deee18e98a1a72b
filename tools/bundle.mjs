// Bundles the programs of src/bin into dist/: one file each starts in a fraction of the time and memory of hundreds of small ones.
import { existsSync, mkdirSync, readdirSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { rehearse } from "./rehearsal.mjs";
import { snapshot } from "./snapshot.mjs";

/** Programs of which a snapshot is made: each costs 15 MB and a second, and only what restarts under load is worth it. */
const WITH_SNAPSHOT = ["istiod"];

/** What `bin/run` says to V8 for them: V8 takes compiled code only where it was compiled under the same flags. */
export const V8_FLAGS = [
  ...["--initial-old-space-size=200", "--min-semi-space-size=4", "--max-semi-space-size=4", "--no-allocation-site-pretenuring"],
  ...["--invocation-count-for-maglev=2000", "--invocation-count-for-turbofan=60000"],
];

const BANNER = 'import { createRequire as __createRequire } from "node:module"; const require = __createRequire(import.meta.url);';

/**
 * Takes Node's own modules as they are. An `import` of one reads every name it exports, those that load on first use too: `node:http` would bring
 * undici with it, which costs time and memory at each start.
 */
const builtinsAsTheyAre = {
  name: "builtins",
  setup(build) {
    build.onResolve({ filter: /^node:/ }, ({ path }) => ({ path, namespace: "builtin" }));
    build.onLoad({ filter: /.*/, namespace: "builtin" }, ({ path }) => ({
      contents: `module.exports = process.getBuiltinModule(${JSON.stringify(path)});`,
    }));
  },
};

/** Writes `dist/<program>.mjs` for each file of src/bin, and snapshots beside them; a failed build leaves the previous bundles in place. */
export async function bundle(root) {
  const out = join(root, ".cache/dist");
  rmSync(out, { recursive: true, force: true });
  const programs = readdirSync(join(root, "src/bin")).filter((name) => name.endsWith(".ts") && !name.endsWith(".test.ts"));
  // Not imported above: this file is read before there are packages.
  const { build } = await import("esbuild");
  const { metafile } = await build({
    absWorkingDir: root,
    entryPoints: programs.map((name) => join("src/bin", name)),
    outdir: out,
    outExtension: { ".js": ".mjs" },
    bundle: true,
    splitting: true,
    platform: "node",
    format: "esm",
    target: "node24",
    sourcemap: true,
    minifyWhitespace: true,
    minifySyntax: true,
    legalComments: "none",
    logLevel: "warning",
    banner: { js: BANNER },
    plugins: [builtinsAsTheyAre],
    metafile: true,
  });
  writeFileSync(join(out, "meta.json"), JSON.stringify(metafile));
  for (const program of WITH_SNAPSHOT) await snapshot({ root, out, program, flags: V8_FLAGS, build, rehearse });
  mkdirSync(join(root, "dist"), { recursive: true });
  const old = join(root, ".cache/dist-old");
  rmSync(old, { recursive: true, force: true });
  if (existsSync(join(root, "dist"))) renameSync(join(root, "dist"), old);
  renameSync(out, join(root, "dist"));
  rmSync(old, { recursive: true, force: true });
}
