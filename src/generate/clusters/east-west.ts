import { type Labels, matchesLabels } from "../../base/labels.ts";
import type { ConfigObject } from "../../config/object.ts";
import type { Query } from "../../engine/index.ts";
import type { Gateway } from "../../gen/istio/networking/v1alpha3/gateway_pb.js";
import { ServerTLSSettings_TLSmode as TlsMode } from "../../gen/istio/networking/v1alpha3/shared_pb.js";
import type { GenerateContext } from "../context.ts";

/** Whether a gateway workload forwards connections by their SNI alone (a server with mode AUTO_PASSTHROUGH), keyed by its labels. */
export function defineEastWest({ engine, inputs }: Pick<GenerateContext, "engine" | "inputs">): Query<Labels, boolean> {
  const selectors = engine.query<"", readonly Labels[]>({
    name: "clusters.autoPassthroughSelectors",
    compute: () =>
      (inputs.objects.list("kind", "Gateway") as readonly ConfigObject<Gateway>[])
        .filter(
          ({ group, spec }) => group === "networking.istio.io" && spec.servers.some(({ tls }) => tls?.mode === TlsMode.AUTO_PASSTHROUGH),
        )
        .map(({ spec }) => spec.selector),
  });
  return engine.query<Labels, boolean>({
    name: "clusters.eastWest",
    id: (labels) => JSON.stringify(labels),
    compute: (labels) => selectors("").some((selector) => matchesLabels(selector, labels)),
  });
}
