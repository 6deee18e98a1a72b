import { type ProxyConfig, ProxyConfigSchema } from "../../../gen/istio/networking/v1beta1/proxy_config_pb.js";
import { checkSelectorLabels } from "../../checks/labels.ts";
import type { Place } from "../../checks/place.ts";
import { istioKind } from "../istio-kind.ts";
import { SELECTOR_RULES } from "../target-rules.ts";

/** Settings of the proxy process of selected workloads. */
export const proxyConfig = istioKind({
  kind: "ProxyConfig",
  group: "networking.istio.io",
  versions: ["v1beta1"],
  plural: "proxyconfigs",
  singular: "proxyconfig",
  shortNames: [],
  schema: ProxyConfigSchema,
  rules: { "selector.matchLabels": SELECTOR_RULES, "environmentVariables{}": { maxLength: 2048 } },
  check: checkProxyConfig,
});

function checkProxyConfig(spec: ProxyConfig, place: Place): void {
  if (spec.selector !== undefined) checkSelectorLabels(spec.selector.matchLabels, place.in("selector"));
  if (spec.concurrency !== undefined && spec.concurrency < 0) place.in("concurrency").fault("field.range", "must not be negative");
  if (Object.hasOwn(spec.environmentVariables, "")) place.in("environmentVariables").fault("field.invalid", "a variable needs a name");
}
