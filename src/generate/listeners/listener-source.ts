import type { Query } from "../../engine/index.ts";
import type { PolicyFilters } from "../../envoy/filters/policy-filters.ts";
import type { ListenerInput } from "../../envoy/listener/listener.ts";
import type { ProxyView } from "../../model/proxy.ts";
import type { Encoded, ResourceSet } from "../../wire/encoded.ts";
import type { GenerateContext } from "../context.ts";
import type { PolicyKeys, PolicyQuery } from "../policies/policy-choice.ts";
import type { PolicyFiltersKey } from "../policies/policy-filters.ts";
import type { ChainSettings, SettingsKey } from "./settings/chain-settings.ts";
import type { SettingsTraits } from "./traits.ts";

/** The listeners of one proxy, found by its attributes and shared with all proxies that agree on those. */
export interface ListenerSource {
  /** The work behind `set`, a listener each. */
  steps(): Iterable<() => void>;
  set(): ResourceSet;
  /** Keys of the objects that a listener was made from. */
  provenance(name: string): readonly string[];
}

/** What the listeners of all kinds of proxies are made with. */
export interface ListenerTools {
  readonly ctx: GenerateContext;
  /** Builds and encodes a listener; equal inputs are built once, whoever asks. */
  readonly built: Query<ListenerInput, Encoded>;
  readonly settings: Query<SettingsKey, ChainSettings>;
  readonly settingsTraits: (view: ProxyView) => SettingsTraits;
  /** Which security policies apply to a workload, and the filters they ask for. */
  readonly policiesFor: (query: PolicyQuery) => PolicyKeys;
  readonly policyFilters: (key: PolicyFiltersKey) => PolicyFilters | undefined;
}
