import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, it } from "vitest";

interface Output {
  readonly imports: readonly { readonly path: string; readonly kind: string; readonly external?: boolean }[];
  readonly inputs: Readonly<Record<string, unknown>>;
}

/** Sources and modules that a program loads when it starts, by the account that the bundler gives. */
async function loadedAtStart(program: string): Promise<ReadonlySet<string>> {
  const { outputs } = JSON.parse(await readFile(join(import.meta.dirname, "../../dist/meta.json"), "utf8")) as {
    readonly outputs: Readonly<Record<string, Output>>;
  };
  const loaded = new Set<string>();
  const seen = new Set<string>();
  const walk = (file: string): void => {
    const output = outputs[file];
    if (seen.has(file) || output === undefined) return;
    seen.add(file);
    for (const source of Object.keys(output.inputs)) loaded.add(source);
    for (const { path, kind, external } of output.imports) {
      if (kind === "dynamic-import") continue;
      if (external === true) loaded.add(path);
      else walk(path);
    }
  };
  for (const file of Object.keys(outputs)) if (file.endsWith(`/${program}.mjs`)) walk(file);
  return loaded;
}

describe("the agent's program", () => {
  it("loads neither the control plane nor descriptors of messages when it starts", async () => {
    const loaded = [...(await loadedAtStart("istio-agent"))];
    expect(loaded).toContain("src/agent/agent.ts");
    const heavy =
      /^src\/(gen|engine|config|generate|envoy|xds|registry|sources|ca)\/|@grpc\/grpc-js|protobuf\/dist\/esm\/(reflect|registry)|^node:http$/;
    expect(loaded.filter((file) => heavy.test(file))).toEqual([]);
    expect(loaded.filter((file) => file.startsWith("src/serve/"))).toEqual(["src/serve/generate-settings.ts"]);
  });
});
