import { fromBinary, type JsonObject } from "@bufbuild/protobuf";
import { buildManagedBootstrap } from "../envoy/bootstrap/managed-bootstrap.ts";
import { BootstrapSchema } from "../gen/envoy/config/bootstrap/v3/bootstrap_pb.js";
import type { ProxyView } from "../model/proxy.ts";
import { encoded, sameEncoded } from "../wire/encode.ts";
import type { Encoded, ResourceSet } from "../wire/encoded.ts";
import { BOOTSTRAP_TYPE } from "../wire/type-urls.ts";
import type { ResourceProvider } from "../xds/provider.ts";
import { bootstrapInput, bootstrapMetadata } from "./bootstrap-input.ts";
import type { GenerateContext } from "./context.ts";
import { patchBootstrap } from "./patches/bootstrap.ts";
import type { PatchPlan, Plans } from "./patches/plan.ts";
import { proxyConfigOf } from "./proxy-config.ts";

interface BootstrapKey {
  readonly proxyConfig: string;
  /** The few entries that count, as JSON. */
  readonly metadata: string;
}

/** The one resource of the type. */
const NAME = "bootstrap";

/** What an agent starts its Envoy with. It adds who the proxy is and its own sockets; EnvoyFilters for `BOOTSTRAP` are in it. */
export function createBootstrapProvider(
  ctx: Pick<GenerateContext, "engine" | "inputs" | "settings">,
  plans: Pick<Plans, "of">,
): ResourceProvider {
  const plain = ctx.engine.query<BootstrapKey, Encoded>({
    name: "bootstrap",
    id: ({ proxyConfig, metadata }) => `${proxyConfig}|${metadata}`,
    same: sameEncoded,
    compute: ({ proxyConfig, metadata }) => {
      const config = proxyConfigOf(ctx.inputs.mesh.get("mesh"), proxyConfig);
      const message = buildManagedBootstrap(bootstrapInput(config, JSON.parse(metadata) as JsonObject, ctx.settings.dualStack));
      return encoded({ typeUrl: BOOTSTRAP_TYPE, name: NAME }, BootstrapSchema, message);
    },
  });
  const counting = ctx.engine.query<string, readonly string[]>({
    name: "bootstrapMetadata",
    id: (proxyConfig) => proxyConfig,
    same: (a, b) => a.join() === b.join(),
    compute: (proxyConfig) => bootstrapMetadata(proxyConfigOf(ctx.inputs.mesh.get("mesh"), proxyConfig)),
  });
  const sets = new WeakMap<PatchPlan, WeakMap<Encoded, ResourceSet>>();
  const patched = (resource: Encoded, plan: PatchPlan, view: ProxyView): ResourceSet => {
    const known = sets.get(plan) ?? new WeakMap<Encoded, ResourceSet>();
    sets.set(plan, known);
    const set = known.get(resource) ?? setOf(patchedResource(resource, plan, view));
    known.set(resource, set);
    return set;
  };
  return {
    typeUrl: BOOTSTRAP_TYPE,
    *prepare() {},
    offered: (view) => patched(plain(keyOf(view, counting(view.metadata.proxyConfig))), plans.of(view), view),
    provenance: () => [],
  };
}

function keyOf({ metadata }: ProxyView, counting: readonly string[]): BootstrapKey {
  const all = JSON.parse(metadata.raw) as JsonObject;
  const entries = counting.flatMap((name) => (all[name] === undefined ? [] : [[name, all[name]]]));
  return { proxyConfig: metadata.proxyConfig, metadata: JSON.stringify(Object.fromEntries(entries)) };
}

function patchedResource(resource: Encoded, plan: PatchPlan, view: ProxyView): Encoded {
  if (!plan.patches.some(({ applyTo }) => applyTo === "BOOTSTRAP")) return resource;
  const { bootstrap } = patchBootstrap(fromBinary(BootstrapSchema, resource.body), plan, view);
  return encoded({ typeUrl: BOOTSTRAP_TYPE, name: NAME }, BootstrapSchema, bootstrap);
}

const setOf = (resource: Encoded): ResourceSet => ({ resources: new Map([[resource.name, resource]]), failed: [] });
