import { mkdir, mkdtemp, rename, rm, symlink, utimes, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { eventually } from "../../../test/support/wait.ts";
import { type Clock, systemClock } from "../../base/clock.ts";
import { loadMesh, type MeshLoad } from "./load-mesh.ts";
import { type MeshWatch, watchMesh } from "./mesh-source.ts";

let base = "";
let stop = new AbortController();
beforeEach(async () => {
  base = await mkdtemp(join(tmpdir(), "mesh-watch-"));
  stop = new AbortController();
});
afterEach(async () => {
  stop.abort();
  await rm(base, { recursive: true, force: true });
});

/** Writes a file at once: between being emptied and being written it could be read by somebody who waits no longer, on a busy machine. */
const put = async (path: string, content: string): Promise<void> => {
  await mkdir(dirname(join(base, path)), { recursive: true });
  await writeFile(join(base, "written"), content);
  await rename(join(base, "written"), join(base, path));
};

interface Watching {
  readonly watch: MeshWatch;
  /** What the next load says: the trust domain, or the first problem. */
  next(): Promise<string>;
  /** Whether nothing is yielded for a while. */
  silent(): Promise<boolean>;
  /** Resolves when it has looked at everything and waits for a change. */
  atRest(): Promise<void>;
}

async function watching(clock: Clock = systemClock): Promise<Watching> {
  let [rests, seen] = [0, 0];
  const after: Clock["after"] = (ms, fn) => {
    rests += 1;
    return clock.after(ms, fn);
  };
  const watch = watchMesh({ baseDir: base, env: {}, clock: { ...clock, after }, since: await loadMesh(base, {}) });
  const loads = watch.loads(stop.signal)[Symbol.asyncIterator]();
  let pending = loads.next();
  const atRest = async (): Promise<void> => void (await eventually("it is at rest", () => rests > seen));
  await atRest();
  return {
    watch,
    atRest,
    next: async () => {
      const { value } = await pending;
      seen = rests;
      pending = loads.next();
      return said(value);
    },
    silent: () => Promise.race([pending.then(() => false), systemClock.sleep(300).then(() => true)]),
  };
}

function said(load: MeshLoad): string {
  return load.ok ? load.config.mesh.trustDomain : `bad: ${load.problems[0]?.message}`;
}

describe("watchMesh", () => {
  it("yields an edit, a bad edit as bad, and the repair", async () => {
    await put("etc/istio/mesh.yaml", "trustDomain: a\n");
    const { next } = await watching();
    await put("etc/istio/mesh.yaml", "trustDomain: b\n");
    expect(await next()).toBe("b");
    await put("etc/istio/mesh.yaml", "trustDomains: c\n");
    expect(await next()).toBe('bad: MeshConfig has no field "trustDomains"');
    await put("etc/istio/mesh.yaml", "trustDomain: b\n");
    expect(await next()).toBe("b");
  });

  it("yields nothing for a touch or another file", async () => {
    await put("etc/istio/mesh.yaml", "trustDomain: a\n");
    const { silent } = await watching();
    await utimes(join(base, "etc/istio/mesh.yaml"), new Date(), new Date());
    await put("etc/istio/mesh.yaml", "trustDomain: a\n");
    await put("etc/istio/.mesh.yaml.swp", "x");
    expect(await silent()).toBe(true);
  });

  it("sees an atomic rename, a removal and a new file", async () => {
    await put("etc/istio/mesh.yaml", "trustDomain: a\n");
    const { next } = await watching();
    await put("etc/istio/.new", "trustDomain: b\n");
    await rename(join(base, "etc/istio/.new"), join(base, "etc/istio/mesh.yaml"));
    expect(await next()).toBe("b");
    await rm(join(base, "etc/istio/mesh.yaml"));
    expect(await next()).toBe("cluster.local");
    await put("etc/istio/mesh.yaml", "trustDomain: c\n");
    expect(await next()).toBe("c");
  });

  it("sees directories that do not exist yet, and one made anew", async () => {
    const { next } = await watching();
    await put("etc/istio/mesh.yaml", "trustDomain: a\n");
    expect(await next()).toBe("a");
    await rm(join(base, "etc"), { recursive: true });
    expect(await next()).toBe("cluster.local");
    await put("etc/istio/mesh.yaml", "trustDomain: b\n");
    expect(await next()).toBe("b");
  });

  it("sees what is written into a directory that was made anew with the inode it had", async () => {
    await put("etc/istio/mesh.yaml", "trustDomain: a\n");
    const { next, atRest } = await watching();
    for (let turn = 1; turn < 6; turn += 1) {
      await rm(join(base, "etc/istio"), { recursive: true });
      await put("etc/istio/mesh.yaml", `trustDomain: made-${turn}\n`);
      expect(await next()).toBe(`made-${turn}`);
      await atRest();
      const startedAt = performance.now();
      await put("etc/istio/mesh.yaml", `trustDomain: edited-${turn}\n`);
      expect(await next()).toBe(`edited-${turn}`);
      expect(performance.now() - startedAt, "it was not found by looking again after a while").toBeLessThan(5_000);
    }
  });

  it("sees the link of a mounted ConfigMap swapped", async () => {
    await put("etc/istio/..1/mesh.yaml", "trustDomain: a\n");
    await symlink("..1", join(base, "etc/istio/..data"));
    await symlink("..data/mesh.yaml", join(base, "etc/istio/mesh.yaml"));
    const { next } = await watching();
    await put("etc/istio/..2/mesh.yaml", "trustDomain: b\n");
    await symlink("..2", join(base, "etc/istio/..tmp"));
    await rename(join(base, "etc/istio/..tmp"), join(base, "etc/istio/..data"));
    await rm(join(base, "etc/istio/..1"), { recursive: true });
    expect(await next()).toBe("b");
    await put("etc/istio/..2/mesh.yaml", "trustDomain: c\n");
    expect(await next()).toBe("c");
  });

  it("follows includes: a change in one, one that appears, one that is added", async () => {
    await put("etc/istio/mesh.yaml", "include: [sub/a.yaml]\n");
    const { next } = await watching();
    await put("etc/istio/sub/a.yaml", "trustDomain: a\n");
    expect(await next()).toBe("a");
    await put("etc/istio/sub/a.yaml", "trustDomain: b\n");
    expect(await next()).toBe("b");
  });

  it("reads a burst of writes once, when it is over", async () => {
    const over = Promise.withResolvers<void>();
    await put("etc/istio/mesh.yaml", "trustDomain: a\n");
    const { next, silent } = await watching({ ...systemClock, sleep: () => over.promise });
    for (let i = 0; i < 10; i++) await put("etc/istio/mesh.yaml", `trustDomain: t${i}\n`);
    over.resolve();
    expect(await next()).toBe("t9");
    expect(await silent()).toBe(true);
  });

  it("does not believe a file that is being rewritten", async () => {
    const written = Promise.withResolvers<void>();
    await put("etc/istio/mesh.yaml", "trustDomain: a\n");
    let pauses = 0;
    const sleep = (): Promise<void> => (pauses++ === 0 ? Promise.resolve() : written.promise);
    const { next } = await watching({ ...systemClock, sleep });
    await put("etc/istio/mesh.yaml", "");
    while (pauses < 2) await systemClock.sleep(5);
    await put("etc/istio/mesh.yaml", "trustDomain: b\n");
    written.resolve();
    expect(await next()).toBe("b");
  });

  it("finds what no watch tells, after a while and when asked", async () => {
    const timers: (() => void)[] = [];
    const after = (_ms: number, fn: () => void): (() => void) => {
      timers.push(fn);
      return () => {};
    };
    const clock: Clock = { ...systemClock, after };
    for (const name of ["a", "b", "c"]) await put(`${name}/mesh.yaml`, `trustDomain: ${name}\n`);
    const swap = async (name: string): Promise<void> => {
      await symlink(`../${name}/mesh.yaml`, join(base, "links/.new"));
      await rename(join(base, "links/.new"), join(base, "links/now"));
    };
    await mkdir(join(base, "links"));
    await swap("a");
    await mkdir(join(base, "etc/istio"), { recursive: true });
    await symlink("../../links/now", join(base, "etc/istio/mesh.yaml"));
    const { watch, silent, next, atRest } = await watching(clock);
    await swap("b");
    expect(await silent()).toBe(true);
    timers.at(-1)?.();
    expect(await next()).toBe("b");
    await atRest();
    await swap("c");
    expect(await silent()).toBe(true);
    watch.rescan();
    expect(await next()).toBe("c");
  });

  it("ends when told to, and holds nothing then", async () => {
    const watch = watchMesh({ baseDir: base, env: {}, clock: systemClock, since: await loadMesh(base, {}) });
    const ended = (async () => {
      for await (const _load of watch.loads(stop.signal)) throw new Error("nothing changed");
    })();
    await systemClock.sleep(20);
    stop.abort();
    await ended;
  });
});
