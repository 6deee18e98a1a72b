import { accessSync, constants, realpathSync } from "node:fs";
import { homedir } from "node:os";
import { delimiter, join } from "node:path";
import { EdgeError } from "../base/errors.ts";

/** The version whose behaviour we test against; set-up fetches exactly this one. */
export const ENVOY_VERSION = "1.40.0";

/** Finds Envoy's binary: `$ENVOY_PATH`, then `PATH`, then the set-up cache. Throws a sentence that says how to get one. */
export function findEnvoy(env: NodeJS.ProcessEnv): string {
  const named = env.ENVOY_PATH;
  if (named !== undefined && named !== "") {
    if (isExecutable(named)) return realpathSync(named);
    throw new EdgeError("envoy_missing", `ENVOY_PATH names ${named}, which is not an executable file`);
  }
  const onPath = (env.PATH ?? "").split(delimiter).map((dir) => join(dir, "envoy"));
  const cached = join(env.XDG_CACHE_HOME || join(homedir(), ".cache"), "istio-ts", `envoy-${ENVOY_VERSION}`, "envoy");
  const found = [...onPath, cached].find(isExecutable);
  if (found === undefined) {
    throw new EdgeError("envoy_missing", "no Envoy was found", {
      hint: "run `node tools/setup.mjs envoy`, or set ENVOY_PATH to an Envoy binary",
    });
  }
  return found;
}

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}
