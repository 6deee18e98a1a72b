// Makes snapshots of programs: the process as it is once all modules are read, which a start then takes up instead of reading them.
// Node's documents call this a user-land start-up snapshot. It is a matter of speed alone: without it `bin/run` starts the bundle.
import { execFileSync } from "node:child_process";
import { mkdirSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { withModules } from "./snapshot-modules.mjs";

const here = dirname(fileURLToPath(import.meta.url));

/**
 * Stands in for the modules of Node until somebody uses one of their names: some hold handles of the running process and cannot be part of a
 * snapshot (`node:http`, `node:http2`), others read the environment. An `import` binds names without reading them, so it loads nothing. The names
 * are inherited, since esbuild copies a module's own ones for each module that imports it, and lets the copy inherit the others.
 */
const lateBuiltins = (names) => ({
  name: "late-builtins",
  setup(build) {
    build.onResolve({ filter: /^[a-z_:0-9/]+$/ }, ({ path }) => {
      const name = path.startsWith("node:") ? path : `node:${path}`;
      return name in names ? { path: name, namespace: "builtin" } : undefined;
    });
    build.onLoad({ filter: /.*/, namespace: "builtin" }, ({ path }) => ({
      contents: `let loaded;
        const late = {};
        for (const name of ${JSON.stringify(names[path])})
          Object.defineProperty(late, name, { get: () => (loaded ??= process.getBuiltinModule(${JSON.stringify(path)}))[name] });
        module.exports = Object.create(late);`,
    }));
  },
});

/** Stands in for a module of prom-client that is a function and asks for the time while it is loaded, until somebody calls it. */
const lateDefaultMetrics = {
  name: "late-default-metrics",
  setup(build) {
    build.onResolve({ filter: /^\.\/lib\/defaultMetrics$/ }, ({ resolveDir }) => ({
      path: join(resolveDir, "lib/defaultMetrics.js"),
      namespace: "late",
    }));
    build.onLoad({ filter: /.*/, namespace: "late" }, ({ path }) => ({
      contents: `module.exports = (...args) => require(${JSON.stringify(path)})(...args);`,
      resolveDir: dirname(path),
    }));
  },
};

/**
 * Writes `<out>/<program>.blob` from `src/bin/<program>.ts`, and beside it the sizes of the Node that made it and of the blob itself: `bin/run`
 * takes a snapshot only where both are still those. Node alone would end with an error where it is another Node's, or cut off. `<program>.blob.map` says
 * which source each function of the snapshot comes from, for profiles (bench/profile.ts); nothing reads it at a start.
 *
 * `flags` are those of V8 that the program runs under. `rehearse` runs it from a first snapshot and says what a start compiles; the snapshot then holds that
 * compiled. Where the rehearsal fails, for want of a free port for instance, the first snapshot stays.
 */
export async function snapshot({ root, out, program, flags = [], build, rehearse }) {
  const node = join(root, "node_modules/.bin/node");
  const work = join(root, ".cache/snapshot");
  const script = join(work, `${program}.cjs`);
  mkdirSync(work, { recursive: true });
  await bundleScript({ root, program, script, node, build });
  const blob = join(out, `${program}.blob`);
  renameSync(`${script}.map`, `${blob}.map`);
  takeSnapshot({ root, program, flags, node, script, blob });
  if (rehearse !== undefined) {
    try {
      const used = await rehearse({ root, node, flags, blob, entry: join(out, `${program}.mjs`), work });
      takeSnapshot({ root, program, flags, node, script, blob, used });
    } catch (error) {
      process.stderr.write(`set-up: the snapshot of ${program} is made without compiled code: ${error.message}\n`);
    }
  }
  writeFileSync(`${blob}.sizes`, `${statSync(node).size}\n${statSync(blob).size}\n`);
}

function bundleScript({ root, program, script, node, build }) {
  const own = (name) => JSON.stringify(join(here, name));
  return build({
    absWorkingDir: root,
    stdin: {
      contents: `import { liftGuard } from ${own("snapshot-guard.mjs")};
        import { compileAhead } from ${own("snapshot-compile.mjs")};
        import "./src/bin/${program}.ts";
        liftGuard();
        compileAhead(process.env.SNAPSHOT_FUNCTIONS);`,
      resolveDir: root,
    },
    outfile: script,
    bundle: true,
    platform: "node",
    format: "cjs",
    target: "node24",
    minifyWhitespace: true,
    minifySyntax: true,
    legalComments: "none",
    logLevel: "warning",
    // Beside the script, not named in it: what is part of a snapshot cannot be larger for it.
    sourcemap: "external",
    // protobuf-es asks whether to do without big integers, for engines that have none.
    define: { "process.env.BUF_BIGINT_DISABLE": '""' },
    plugins: [lateBuiltins(namesOfBuiltins(node)), lateDefaultMetrics],
  });
}

/** Takes the snapshot: without compiled code, or with that of the functions and modules of Node that are `used`. */
function takeSnapshot({ root, program, flags, node, script, blob, used }) {
  const [config, list, made] = [script.replace(/cjs$/, "json"), script.replace(/cjs$/, "functions.json"), `${blob}.tmp`];
  writeFileSync(config, JSON.stringify({ builder: script, withoutCodeCache: used === undefined }));
  const { SNAPSHOT_FUNCTIONS: _, ...env } = process.env;
  if (used !== undefined) {
    writeFileSync(list, JSON.stringify(used.functions));
    env.SNAPSHOT_FUNCTIONS = list;
  }
  try {
    execFileSync(node, [...flags, "--snapshot-blob", made, "--build-snapshot-config", config], { cwd: root, env, stdio: "pipe" });
  } catch (error) {
    rmSync(made, { force: true });
    // Without the line of the script, which is all of the program.
    const lines = String(error.stderr ?? error.message).split("\n");
    throw new Error(`no snapshot of ${program} could be made\n${lines.filter((line) => line.length < 500).join("\n")}`);
  }
  if (used !== undefined) {
    const small = withModules(readFileSync(made), used.modules);
    rmSync(made);
    if (small === undefined) throw new Error("Node writes its snapshots in another way");
    writeFileSync(made, small);
  }
  renameSync(made, blob);
}

/** What each module of Node exports. Asked of the Node that runs the program: this script may run on another. */
function namesOfBuiltins(node) {
  const script = `const names = {};
    for (const name of require("node:module").builtinModules.filter((name) => !name.startsWith("_")))
      names[name.startsWith("node:") ? name : "node:" + name] = Object.getOwnPropertyNames(require(name));
    process.stdout.write(JSON.stringify(names));`;
  return JSON.parse(execFileSync(node, ["--no-warnings", "-e", script], { encoding: "utf8" }));
}
