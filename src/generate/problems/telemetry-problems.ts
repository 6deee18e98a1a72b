import type { ConfigObject } from "../../config/object.ts";
import type { Telemetry } from "../../gen/istio/telemetry/v1alpha1/telemetry_pb.js";
import type { GenerateContext } from "../context.ts";
import { providerNamed } from "../listeners/settings/extension-provider.ts";
import { type Finding, finding } from "./finding.ts";

/** Providers of metrics that proxies cannot serve: where a workload has no other, it has no metrics. */
export function uselessProviders({ inputs }: Pick<GenerateContext, "inputs">, { spec }: ConfigObject<Telemetry>): readonly Finding[] {
  const mesh = inputs.mesh.get("mesh");
  if (mesh === undefined) return [];
  return spec.metrics.flatMap(({ providers }, index) =>
    providers.flatMap(({ name }, at) => {
      const kind = providerNamed(mesh, name)?.provider.case;
      if (kind === "prometheus") return [];
      const reason =
        kind === undefined ? `the mesh has no provider ${JSON.stringify(name)}` : "upstream Envoy serves metrics to Prometheus only";
      return [finding("field.ineffective", ["metrics", index, "providers", at, "name"], `${reason}; there are no metrics for it`)];
    }),
  );
}
