import { accessSync, constants, realpathSync, statSync } from "node:fs";
import { homedir } from "node:os";
import { delimiter, join, resolve } from "node:path";
import { EdgeError } from "../base/errors.ts";

/** The version whose behaviour we test against; set-up fetches exactly this one. */
export const ENVOY_VERSION = "1.40.0";

/** Where Istio's image has it: as the value of `binaryPath` it is Istio's default, which on other machines says nothing. */
const ISTIO_BINARY = "/usr/local/bin/envoy";

/** The Envoy of an agent: what `ENVOY_PATH`, then `binaryPath` of PROXY_CONFIG names; else it is looked for. */
export function agentEnvoy({
  env,
  settings: { envoyPath },
  proxy: { binaryPath },
}: {
  readonly env: NodeJS.ProcessEnv;
  readonly settings: { readonly envoyPath: string };
  readonly proxy: { readonly binaryPath: string };
}): string {
  if (envoyPath !== "") return namedEnvoy("ENVOY_PATH", envoyPath);
  if (binaryPath !== "" && (binaryPath !== ISTIO_BINARY || isExecutable(ISTIO_BINARY))) return namedEnvoy("binaryPath", binaryPath);
  return findEnvoy(env);
}

function namedEnvoy(by: string, path: string): string {
  if (isExecutable(path)) return realpathSync(path);
  throw new EdgeError("envoy_missing", `${by} names ${path}, which is not an executable file`);
}

/** Finds Envoy's binary: `$ENVOY_PATH`, then `PATH`, then the set-up cache. Throws a sentence that says how to get one. */
export function findEnvoy(env: NodeJS.ProcessEnv): string {
  const named = env.ENVOY_PATH;
  if (named !== undefined && named !== "") return namedEnvoy("ENVOY_PATH", named);
  const onPath = (env.PATH ?? "").split(delimiter).map((dir) => join(dir, "envoy"));
  const cached = join(env.XDG_CACHE_HOME || join(homedir(), ".cache"), "istio-ts", `envoy-${ENVOY_VERSION}`, "envoy");
  const found = [...onPath, cached].find(isExecutable);
  if (found === undefined) {
    throw new EdgeError("envoy_missing", "no Envoy was found", {
      hint: "run `node tools/setup.mjs envoy`, or set ENVOY_PATH to an Envoy binary",
    });
  }
  return resolve(found);
}

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    // A directory may be entered, which is the same permission.
    return statSync(path).isFile();
  } catch {
    return false;
  }
}
