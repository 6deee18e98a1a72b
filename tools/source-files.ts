import { readdirSync, statSync } from "node:fs";
import { join } from "node:path";

/** Every source file below a folder, apart from generated code: nobody writes that, so nothing is asked of it. */
export function sourceFiles(dir: string): readonly string[] {
  return readdirSync(dir).flatMap((name) => {
    const path = join(dir, name);
    if (name === "gen") return [];
    return statSync(path).isDirectory() ? sourceFiles(path) : /\.m?[jt]s$/.test(name) ? [path] : [];
  });
}
