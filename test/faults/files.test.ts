import { execFileSync } from "node:child_process";
import {
  appendFileSync,
  closeSync,
  ftruncateSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { systemClock } from "../../src/base/clock.ts";
import { silentLog } from "../../src/base/log.ts";
import { defineInputs } from "../../src/config/inputs.ts";
import { readObject } from "../../src/config/read-object.ts";
import { createLastGood } from "../../src/config/store/last-good.ts";
import { createStore } from "../../src/config/store/store.ts";
import { createEngine } from "../../src/engine/index.ts";
import { fileSource } from "../../src/sources/files/file-source.ts";
import { eventually } from "../support/wait.ts";

const MEGABYTE = 1024 * 1024;

const entry = (name: string, address = "10.0.0.1"): string => `apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: {name: ${name}, namespace: shop}
spec:
  hosts: [${name.slice(0, 50)}.shop.example.com]
  resolution: STATIC
  ports: [{number: 80, name: http, protocol: HTTP}]
  endpoints: [{address: ${address}}]
`;

/** A directory, its source and the store, running; and how long the loop was held at worst, in processor time: the clock's would tell what others had to do. */
class World {
  readonly dir: string;
  readonly engine = createEngine();
  readonly inputs = defineInputs(this.engine);
  readonly store;
  readonly #source;
  readonly #abort = new AbortController();
  #done: Promise<void> | undefined;
  #ready = false;
  longestTurnMs = 0;

  constructor(base: string) {
    this.dir = join(base, "conf");
    mkdirSync(this.dir, { recursive: true });
    this.#source = fileSource(this.dir, { clock: systemClock, log: silentLog });
    this.store = createStore({
      engine: this.engine,
      inputs: this.inputs,
      sources: [this.#source.name],
      readObject,
      log: silentLog,
      clock: systemClock,
      persistence: createLastGood(join(base, "last-good"), { log: silentLog }),
    });
  }

  write(path: string, content: string | Uint8Array): void {
    writeFileSync(join(this.dir, path), content);
  }

  replace(path: string, content: string): void {
    this.write(`.${path}.new`, content);
    renameSync(join(this.dir, `.${path}.new`), join(this.dir, path));
  }

  async start(): Promise<this> {
    await this.store.restore();
    this.#done = this.#run();
    void this.#watchTurns();
    await this.until(() => this.#ready);
    return this;
  }

  async stop(): Promise<void> {
    this.#abort.abort();
    await this.#done;
    await this.store.flush();
  }

  async #run(): Promise<void> {
    for await (const event of this.#source.events(this.#abort.signal)) {
      await this.store.apply(this.#source.name, event);
      this.#ready = true;
    }
  }

  async #watchTurns(): Promise<void> {
    for (let last = process.threadCpuUsage(); !this.#abort.signal.aborted; last = process.threadCpuUsage()) {
      await systemClock.sleep(5);
      const { user, system } = process.threadCpuUsage(last);
      this.longestTurnMs = Math.max(this.longestTurnMs, (user + system) / 1_000);
    }
  }

  until(condition: () => boolean): Promise<unknown> {
    return eventually(String(condition), () => {
      if (condition()) return true;
      throw new Error(`problems: ${JSON.stringify(this.store.problems()).slice(0, 2_000)}`);
    });
  }

  /** Names of the objects in force. */
  names(): string[] {
    return this.inputs.objects.all().map((object) => object.name.slice(0, 40));
  }

  /** What is wrong with one file. */
  faults(path: string): string[] {
    const file = join(this.dir, path);
    return this.store
      .problems()
      .flatMap((problem) => (problem.file === file || problem.file === `${file}/` ? [`${problem.code}: ${problem.message}`] : []));
  }
}

let base: string;
let world: World;
beforeEach(async () => {
  base = mkdtempSync(join(tmpdir(), "faults-"));
  world = new World(base);
  world.write("good.yaml", entry("good"));
  await world.start();
});
afterEach(async () => {
  await world.stop();
  rmSync(base, { recursive: true, force: true });
});

/** The bad thing is reported, and the control plane goes on: what was in force stays, and the next change is taken. */
async function expectRefusal(path: string, fault: RegExp): Promise<void> {
  await world.until(() => world.faults(path).length > 0);
  expect(world.faults(path).join("\n")).toMatch(fault);
  await expectAlive();
}

async function expectAlive(): Promise<void> {
  expect(world.names()).toContain("good");
  world.replace("after.yaml", entry("after"));
  await world.until(() => world.names().includes("after"));
}

const aliasBomb = [
  "a: &a [x,x,x,x,x,x,x,x,x]",
  ..."bcdefghij".split("").map((name, i) => `${name}: &${name} [${Array(9).fill(`*${"abcdefghij"[i]}`)}]`),
].join("\n");

describe("bad files", () => {
  it("malformed YAML costs its document only", async () => {
    world.replace("bad.yaml", `${entry("one")}---\nkind: [\n---\n${entry("two")}`);
    await world.until(() => world.names().includes("two"));
    expect(world.names()).toEqual(["good", "one", "two"]);
    await expectRefusal("bad.yaml", /document.unreadable: .*not valid YAML/);
  });

  it("a file of 50 MB is refused with the limit and the setting, and never read", async () => {
    const file = openSync(join(world.dir, "huge.yaml"), "w");
    ftruncateSync(file, 50 * MEGABYTE);
    closeSync(file);
    await expectRefusal("huge.yaml", /50 MB; the limit is 16 MB: .*ISTIO_MAX_CONFIG_FILE_BYTES/);
  });

  it("an alias bomb is not followed", async () => {
    const before = process.memoryUsage().rss;
    world.replace("bomb.yaml", `${aliasBomb}\n---\n${entry("beside")}`);
    await expectRefusal("bomb.yaml", /once its aliases are followed/);
    expect(world.names()).toContain("beside");
    expect(process.memoryUsage().rss - before).toBeLessThan(100 * MEGABYTE);
    expect(world.longestTurnMs).toBeLessThan(200);
  });

  it("binary and other encodings are told apart from text", async () => {
    world.write(
      "binary.yaml",
      Uint8Array.from({ length: 4_096 }, (_, i) => i & 255),
    );
    await expectRefusal("binary.yaml", /binary/);
    world.write("latin.yaml", Uint8Array.from([0x61, 0x3a, 0x20, 0xe4, 0xf6]));
    await expectRefusal("latin.yaml", /not UTF-8/);
  });

  it("nesting without end is refused", async () => {
    world.replace("deep.yaml", "[".repeat(200_000));
    await expectRefusal("deep.yaml", /100 levels/);
    world.replace("deep.json", `${'{"a":'.repeat(200_000)}1${"}".repeat(200_000)}`);
    await expectRefusal("deep.json", /100 levels/);
  });

  it("a name of 1 MB is refused in a short sentence", async () => {
    world.replace("name.yaml", entry("n".repeat(MEGABYTE)));
    await expectRefusal("name.yaml", /metadata.name: /);
    expect(world.faults("name.yaml").join("").length).toBeLessThan(2_000);
  });

  it("cyclic links end", async () => {
    symlinkSync(".", join(world.dir, "self"));
    mkdirSync(join(world.dir, "ns"));
    symlinkSync("../ns", join(world.dir, "ns/again"));
    symlinkSync("loop.yaml", join(world.dir, "loop.yaml"));
    await expectRefusal("loop.yaml", /leads back to itself/);
    expect(world.names()).toEqual(["after", "good"]);
  });

  it("a pipe and a directory in the place of a file are left alone", async () => {
    execFileSync("mkfifo", [join(world.dir, "pipe.yaml")]);
    mkdirSync(join(world.dir, "directory.yaml"));
    await expectAlive();
  });

  it("a file that is never finished disturbs nobody", async () => {
    const writer = new AbortController();
    const scribble = async (): Promise<void> => {
      for (; !writer.signal.aborted; await systemClock.sleep(1)) appendFileSync(join(world.dir, "endless.yaml"), `- ${"x".repeat(500)}\n`);
    };
    const written = scribble();
    await expectAlive();
    writer.abort();
    await written;
    await expectRefusal("endless.yaml", /document.not-an-object/);
  });
});

describe("last good", () => {
  it("stays in force through a broken edit and a restart, until the file is deleted", async () => {
    world.replace("shop.yaml", `${entry("cart")}---\n${entry("items")}`);
    await world.until(() => world.names().includes("items"));
    world.replace("shop.yaml", `${entry("cart", "not an address!")}---\n${entry("items", "10.0.0.2")}---\nkind: [`);
    await world.until(() => world.faults("shop.yaml").length >= 2);
    expect(world.names()).toEqual(["cart", "good", "items"]);
    expect(world.store.status("ServiceEntry/shop/cart")?.state).toBe("stale");
    await world.stop();

    world = await new World(base).start();
    expect(world.names()).toEqual(["cart", "good", "items"]);
    expect(world.store.status("ServiceEntry/shop/cart")?.state).toBe("stale");
    rmSync(join(world.dir, "shop.yaml"));
    await world.until(() => world.names().length === 1);
  });

  it("is not lost when the whole directory disappears", async () => {
    renameSync(world.dir, `${world.dir}.away`);
    await systemClock.sleep(300);
    expect(world.names()).toEqual(["good"]);
    renameSync(`${world.dir}.away`, world.dir);
    await expectAlive();
  });
});
