import { existsSync } from "node:fs";
import { chmod, mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { agentEnvoy, ENVOY_VERSION, findEnvoy } from "./find-envoy.ts";

let dir: string;

beforeEach(async () => {
  dir = await mkdtemp(join(tmpdir(), "find-envoy-"));
});

afterEach(() => rm(dir, { recursive: true }));

async function program(...path: readonly string[]): Promise<string> {
  const file = join(dir, ...path);
  await mkdir(join(file, ".."), { recursive: true });
  await writeFile(file, "#!/bin/sh\n");
  await chmod(file, 0o755);
  return file;
}

describe("findEnvoy", () => {
  it("prefers what ENVOY_PATH names, then the PATH, then the cache", async () => {
    const cached = await program("cache", "istio-ts", `envoy-${ENVOY_VERSION}`, "envoy");
    const onPath = await program("bin", "envoy");
    const named = await program("named");
    const env = { XDG_CACHE_HOME: join(dir, "cache") };
    expect(findEnvoy(env)).toBe(cached);
    expect(findEnvoy({ ...env, PATH: `/nowhere:${join(dir, "bin")}` })).toBe(onPath);
    expect(findEnvoy({ ...env, PATH: join(dir, "bin"), ENVOY_PATH: named })).toBe(named);
  });

  it("takes no directory of that name for it", async () => {
    const cached = await program("cache", "istio-ts", `envoy-${ENVOY_VERSION}`, "envoy");
    await mkdir(join(dir, "bin", "envoy"), { recursive: true });
    expect(findEnvoy({ XDG_CACHE_HOME: join(dir, "cache"), PATH: join(dir, "bin") })).toBe(cached);
    expect(() => findEnvoy({ ENVOY_PATH: join(dir, "bin", "envoy") })).toThrow(/not an executable file/);
  });

  it("does not look further where ENVOY_PATH names nothing that can be run", async () => {
    await program("cache", "istio-ts", `envoy-${ENVOY_VERSION}`, "envoy");
    expect(() => findEnvoy({ XDG_CACHE_HOME: join(dir, "cache"), ENVOY_PATH: join(dir, "none") })).toThrow(/ENVOY_PATH names .*none/);
  });

  it("of an agent is what ENVOY_PATH names, then binaryPath of its ProxyConfig; Istio's default of that may be missing", async () => {
    const [named, configured, onPath] = [await program("named"), await program("configured"), await program("bin", "envoy")];
    const find = (envoyPath: string, binaryPath: string): string =>
      agentEnvoy({ env: { PATH: join(dir, "bin") }, settings: { envoyPath }, proxy: { binaryPath } });
    expect(find(named, configured)).toBe(named);
    expect(find("", configured)).toBe(configured);
    expect(find("", "")).toBe(onPath);
    expect(find("", "/usr/local/bin/envoy")).toBe(existsSync("/usr/local/bin/envoy") ? "/usr/local/bin/envoy" : onPath);
    expect(() => find("", join(dir, "none"))).toThrow(/binaryPath names .*none/);
  });

  it("says how to get one where there is none", () => {
    expect(() => findEnvoy({ XDG_CACHE_HOME: dir })).toThrow("no Envoy was found");
  });
});
