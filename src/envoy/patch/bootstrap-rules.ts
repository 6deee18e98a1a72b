import { BootstrapSchema, LayeredRuntimeSchema } from "../../gen/envoy/config/bootstrap/v3/bootstrap_pb.js";
import { TagSpecifierSchema } from "../../gen/envoy/config/metrics/v3/stats_pb.js";
import { OverloadManagerSchema } from "../../gen/envoy/config/overload/v3/overload_pb.js";
import { at } from "./fault.ts";
import { isRepeated, type MessageRule, messageRule } from "./message-rule.ts";

/** What Envoy would not start with. */
export const BOOTSTRAP_RULES: readonly MessageRule[] = [
  messageRule(BootstrapSchema, ({ staticResources, statsFlush, statsFlushInterval }) => [
    isRepeated(staticResources?.clusters.map(({ name }) => name) ?? []) && at("static_resources.clusters", "must not repeat a name"),
    statsFlush.case === "statsFlushOnAdmin" &&
      statsFlushInterval !== undefined &&
      at("stats_flush_on_admin", "cannot be combined with stats_flush_interval"),
  ]),
  messageRule(LayeredRuntimeSchema, ({ layers }) => [
    layers.filter(({ layerSpecifier }) => layerSpecifier.case === "adminLayer").length > 1 && at("layers", "can have one admin_layer"),
    isRepeated(layers.map(({ name }) => name)) && at("layers", "must not repeat a name"),
  ]),
  // Envoy has expressions of its own for its own tags.
  messageRule(TagSpecifierSchema, ({ tagName, tagValue }) => [
    tagName === "" && at("tag_name", "must be set"),
    tagValue.case === undefined && !tagName.startsWith("envoy.") && at("", "must have regex or fixed_value"),
  ]),
  messageRule(OverloadManagerSchema, ({ resourceMonitors, actions, loadshedPoints }) => {
    const monitored = new Set(resourceMonitors.map(({ name }) => name));
    const watched = [...actions, ...loadshedPoints].flatMap(({ triggers }) => triggers);
    return watched.map(({ name }) => !monitored.has(name) && at("resource_monitors", `must have ${name}, which a trigger names`));
  }),
];
