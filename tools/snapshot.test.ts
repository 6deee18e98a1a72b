import { execFile } from "node:child_process";
import { mkdir, readFile, stat, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { build } from "esbuild";
import { describe, expect, it } from "vitest";
import { tempDir } from "../test/support/cleanup.ts";
import { V8_FLAGS } from "./bundle.mjs";
import { readLog } from "./rehearsal.mjs";
import { type Rehearsal, snapshot, type UsedCode } from "./snapshot.mjs";

const PACKAGES = join(import.meta.dirname, "../node_modules");
const run = promisify(execFile);

/** A checkout with one program of this text. */
async function checkout(program: string): Promise<string> {
  const root = await tempDir("snapshot-");
  await mkdir(join(root, "src/bin"), { recursive: true });
  await mkdir(join(root, "dist"));
  await symlink(PACKAGES, join(root, "node_modules"));
  await writeFile(join(root, "src/bin/program.ts"), program);
  return root;
}

type Rehearse = (rehearsal: Rehearsal) => Promise<UsedCode>;

const make = (root: string, rehearse?: Rehearse): Promise<void> =>
  snapshot({ root, out: join(root, "dist"), program: "program", build, ...(rehearse !== undefined && { rehearse }) });

/** What V8 says a start from this snapshot compiles. */
async function compiledBy({ node, blob, work }: Pick<Rehearsal, "node" | "blob" | "work">): Promise<UsedCode> {
  const log = join(work, "v8.log");
  await run(node, ["--log-function-events", "--no-logfile-per-isolate", `--logfile=${log}`, "--snapshot-blob", blob, "program.mjs"]);
  return readLog(await readFile(log, "latin1"));
}

const main = (body: string): string => `
  import { startupSnapshot } from "node:v8";
  import { request } from "node:http";
  startupSnapshot.setDeserializeMainFunction(() => { ${body} });`;

describe("a snapshot", () => {
  it("is compiled under the flags that it runs under", async () => {
    const script = await readFile(join(import.meta.dirname, "../bin/run"), "utf8");
    for (const flag of V8_FLAGS) expect(script).toContain(flag);
  });

  it("starts with what was loaded, and with the arguments, environment, time and modules of its own process", async () => {
    const told = "typeof request, process.env.GREETING, process.argv[2], Date.now() > 1e12, loaded.size";
    const root = await checkout(`const loaded = new Map([["a", 1]]);${main(`console.log(${told})`)}`);
    await make(root);
    const blob = join(root, "dist/program.blob");
    const env = { ...process.env, GREETING: "hello" };
    const { stdout } = await run(process.execPath, ["--snapshot-blob", blob, "program.mjs", "word"], { env });
    expect(stdout).toBe("function hello word true 1\n");
    const sizes = [await stat(join(PACKAGES, ".bin/node")), await stat(blob)].map(({ size }) => `${size}\n`);
    expect(await readFile(`${blob}.sizes`, "utf8")).toBe(sizes.join(""));
  });

  it("leaves Node's own objects as fast as they were", async () => {
    const fast = `setFlagsFromString("--allow-natives-syntax"); console.log(new Function("return %HasFastProperties(Math)")())`;
    const root = await checkout(`import { setFlagsFromString } from "node:v8"; ${main(fast)}`);
    await make(root);
    const { stdout } = await run(process.execPath, ["--snapshot-blob", join(root, "dist/program.blob"), "program.mjs"]);
    expect(stdout).toBe("true\n");
  });

  it("has chance of its own in every process", async () => {
    const root = await checkout(
      `import { randomUUID } from "node:crypto"; const known = new Set(["a"]); ${main("console.log(known.size, Math.random(), randomUUID())")}`,
    );
    await make(root);
    const start = async (): Promise<readonly string[]> =>
      (await run(process.execPath, ["--snapshot-blob", join(root, "dist/program.blob"), "program.mjs"])).stdout.split(" ");
    const [first, second] = [await start(), await start()];
    expect(first[1]).not.toBe(second[1]);
    expect(first[2]).not.toBe(second[2]);
  });

  it("holds compiled what a rehearsed start compiled, of the program and of the modules that it loads", async () => {
    const root = await checkout(
      `class Greeter { #word() { return "hello"; } greet() { return [1].map(() => this.#word()).join(); } idle() {} }
      ${main('console.log(new Greeter().greet(), typeof request, typeof process.getBuiltinModule("node:http2").connect)')}`,
    );
    const place = { node: join(PACKAGES, ".bin/node"), blob: join(root, "dist/program.blob"), work: root };
    const script = join(root, ".cache/snapshot/program.cjs");
    let before: UsedCode | undefined;
    await make(root, async (rehearsal) => {
      before = await compiledBy({ ...rehearsal, work: root });
      return before;
    });
    expect(before?.functions[script]?.length).toBeGreaterThan(3);
    expect(before?.modules).toContain("http2");
    const after = await compiledBy(place);
    expect(after.functions[script]).toBeUndefined();
    const env = { ...process.env, NODE_DEBUG_NATIVE: "CODE_CACHE" };
    const { stdout, stderr } = await run(place.node, ["--snapshot-blob", place.blob, "program.mjs"], { env });
    expect(stdout).toBe("hello function function\n");
    expect(stderr).toMatch(/Code cache of http2 .*accepted/);
    expect(stderr).not.toMatch(/rejected/);
  });

  it("is made without compiled code where the rehearsal fails", async () => {
    const root = await checkout(main('console.log("hello")'));
    await make(root, () => Promise.reject(new Error("no port is free")));
    const { stdout } = await run(process.execPath, ["--snapshot-blob", join(root, "dist/program.blob"), "program.mjs"]);
    expect(stdout).toBe("hello\n");
  });

  const frozen: readonly [what: string, statement: string, want: RegExp][] = [
    ["the environment", "Object.assign(globalThis, { level: process.env.LOG_LEVEL });", /environment variable LOG_LEVEL/],
    ["the time", "Object.assign(globalThis, { started: Date.now() });", /asks for the time/],
    ["chance", 'import { randomBytes } from "node:crypto"; Object.assign(globalThis, { salt: randomBytes(8) });', /crypto\.randomBytes/],
    ["the machine", 'import { hostname } from "node:os"; Object.assign(globalThis, { name: hostname() });', /os\.hostname/],
    [
      "a file",
      'import { readFileSync } from "node:fs"; Object.assign(globalThis, { text: readFileSync("/etc/hosts") });',
      /fs\.readFileSync/,
    ],
  ];
  for (const [what, statement, want] of frozen)
    it(`is not made of a program that reads ${what} while it is loaded`, async () => {
      await expect(make(await checkout(`${statement}${main("")}`))).rejects.toThrow(want);
    });
});
