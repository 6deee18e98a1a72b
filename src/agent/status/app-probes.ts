import { EdgeError, messageOf } from "../../base/errors.ts";
import { type Fields, type ProbeMethod, readProbeMethod, recordOf } from "./probe-method.ts";

/** How injection saw one probe of the application. */
export type AppProbe = { readonly timeoutMs: number } & ProbeMethod;

const PATH = /^\/(app-health|app-lifecycle)\/[^/]+\/(livez|readyz|startupz|prestopz|poststartz)$/;
const DEFAULT_TIMEOUT_SECONDS = 1;

/** Reads ISTIO_KUBE_APP_PROBERS: path on the agent's port to a probe in Kubernetes' form. Throws `EdgeError` that names what is wrong. */
export function readAppProbes(json: string): ReadonlyMap<string, AppProbe> {
  if (json.trim() === "") return new Map();
  try {
    const probes = recordOf(JSON.parse(json));
    if (probes === undefined) throw new Error("it is not an object");
    return new Map(Object.entries(probes).map(([path, probe]) => [path, readProbe(path, recordOf(probe) ?? {})]));
  } catch (error) {
    throw new EdgeError("usage", `ISTIO_KUBE_APP_PROBERS cannot be read: ${messageOf(error)}`, {
      hint: "injection writes it; it should not be set by hand",
    });
  }
}

function readProbe(path: string, probe: Fields): AppProbe {
  if (!PATH.test(path)) throw new Error(`${path} is no path of a probe`);
  const seconds = probe.timeoutSeconds;
  const timeoutMs = (typeof seconds === "number" && seconds > 0 ? seconds : DEFAULT_TIMEOUT_SECONDS) * 1_000;
  return { ...readProbeMethod(path, probe), timeoutMs };
}
