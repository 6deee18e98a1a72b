import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { tally } from "../support/calls.ts";
import { startIstiod } from "../support/istiod.ts";
import { rule, weights } from "../support/shop.ts";
import { startShop } from "../support/shop-mesh.ts";
import { eventually } from "../support/wait.ts";

/** What esbuild says it put where. */
interface Metafile {
  readonly outputs: Readonly<
    Record<
      string,
      {
        readonly inputs: Readonly<Record<string, unknown>>;
        readonly imports: readonly { readonly path: string; readonly external?: boolean }[];
      }
    >
  >;
}

/** All sources and packages in a bundle and in every chunk that it can reach. */
function linked({ outputs }: Metafile, entry: string): readonly string[] {
  const reached = new Set<string>();
  const visit = (path: string): void => {
    const output = outputs[path];
    if (output === undefined || reached.has(path)) return;
    reached.add(path);
    for (const { path: next } of output.imports) visit(next);
  };
  visit(entry);
  return [...reached].flatMap((path) => [
    ...Object.keys(outputs[path]?.inputs ?? {}),
    ...(outputs[path]?.imports ?? []).filter(({ external }) => external).map(({ path: name }) => name),
  ]);
}

describe("istiod-vm", () => {
  it("moves traffic as istiod does", async () => {
    const shop = await startShop({ http: weights(100, 0), istiod: { program: "istiod-vm" } });
    expect(await tally(20, shop.target)).toEqual({ v1: 20 });
    await shop.route(rule("v2"), async () => (await tally(20, shop.target)).v2 === 20);
    await shop.proxy.assertNothingRejected();
  });

  it("links no Kubernetes client", async () => {
    const metafile = JSON.parse(await readFile(join(import.meta.dirname, "../../dist/meta.json"), "utf8")) as Metafile;
    const entry = Object.keys(metafile.outputs).find((path) => path.endsWith("/istiod-vm.mjs")) ?? "";
    const inputs = linked(metafile, entry);
    expect(inputs).toContain("src/bin/istiod-vm.ts");
    expect(inputs).toContain("src/serve/control-plane.ts");
    expect(inputs.filter((path) => /@kubernetes\/|(^|\/)src\/(kube|cluster|sources\/kubernetes)\//.test(path))).toEqual([]);
  });
});

describe.for(["istiod", "istiod-vm"] as const)("%s with nothing at all", (program) => {
  it("is ready, and prints five lines: directory, sources, ports, where to look, what to try", async () => {
    const istiod = await startIstiod({ program, confDir: false });
    const lines = await eventually("five lines are printed", () => {
      const printed = istiod.said().split("\n").slice(0, -1);
      return printed.length >= 5 && printed;
    });
    expect(lines).toHaveLength(5);
    expect(lines[0]).toContain(join(istiod.home, "etc/istio"));
    expect(lines[1]).toMatch(/^sources: /);
    expect(lines[2]).toContain(`127.0.0.1:${istiod.grpcPort}`);
    const [link = ""] = /http:\S+/.exec(lines[3] ?? "") ?? [];
    expect((await fetch(link)).status).toBe(200);
    expect(lines[4]).toContain("etc/istio/conf");
    expect(istiod.log()).not.toMatch(/warn|error/);
    expect(await istiod.stop()).toBe(0);
  });
});
