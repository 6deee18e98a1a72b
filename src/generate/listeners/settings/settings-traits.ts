import type { Query } from "../../../engine/index.ts";
import type { ProxyView } from "../../../model/proxy.ts";
import type { GenerateContext } from "../../context.ts";
import { relevantProxyConfig, type SettingsTraits } from "../traits.ts";
import type { WorkloadQuery } from "./telemetry.ts";
import { namesService } from "./tracing.ts";

/** Picks from a proxy what its settings depend on. Its name counts only where a tracer reports under it. */
export function defineSettingsTraits(
  ctx: Pick<GenerateContext, "engine" | "inputs">,
  telemetryFor: Query<WorkloadQuery, readonly string[]>,
): (view: ProxyView) => SettingsTraits {
  const named = ctx.engine.query<"mesh", boolean>({
    name: "tracersNameServices",
    compute: () => {
      const mesh = ctx.inputs.mesh.get("mesh");
      return mesh !== undefined && namesService(mesh);
    },
  });
  return ({ namespace, labels, metadata }) => ({
    telemetry: telemetryFor({ namespace, labels }),
    proxyConfig: relevantProxyConfig(metadata.proxyConfig),
    idleTimeout: metadata.idleTimeout,
    acceptHttp10: metadata.http10,
    tracingService: named("mesh") ? `${labels.app ?? labels["service.istio.io/canonical-name"] ?? "istio-proxy"}.${namespace}` : "",
  });
}
