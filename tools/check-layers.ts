import { readFileSync } from "node:fs";
import { dirname, join, relative, resolve } from "node:path";
import { sourceFiles } from "./source-files.ts";

/** An import that points the wrong way. */
export interface LayerFault {
  readonly file: string;
  readonly imports: string;
  readonly reason: string;
}

const IMPORT = /(?:from|import)\s*\(?\s*"(\.{1,2}\/[^"]+)"/g;

/** Checks every import of `src` against `tools/layers.json`: the order of the stages is the architecture, so a build step holds it. */
export function checkLayers(root: string): readonly LayerFault[] {
  const layers = JSON.parse(readFileSync(join(root, "tools/layers.json"), "utf8")) as Record<string, readonly string[]>;
  const src = join(root, "src");
  return sourceFiles(src).flatMap((file) => {
    const own = layerOf(relative(src, file));
    const allowed = layers[own];
    if (allowed === undefined) return [{ file: relative(root, file), imports: "", reason: `folder ${own} is not in tools/layers.json` }];
    if (file.endsWith(".test.ts") || allowed.includes("*")) return [];
    return importsOf(file)
      .map((target) => relative(src, target))
      .filter((target) => layerOf(target) !== own && !allowed.includes(layerOf(target)) && !allowed.includes(target))
      .map((target) => ({ file: relative(root, file), imports: target, reason: `${own} may import ${allowed.join(", ")}` }));
  });
}

function importsOf(file: string): readonly string[] {
  return [...readFileSync(file, "utf8").matchAll(IMPORT)].map(([, path = ""]) => resolve(dirname(file), path));
}

const layerOf = (path: string): string => path.split("/")[0] ?? "";
