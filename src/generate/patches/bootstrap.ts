import { fromBinary } from "@bufbuild/protobuf";
import { applyPatches } from "../../envoy/patch/apply.ts";
import { mergeInto } from "../../envoy/patch/merge.ts";
import { contentFor, inContext, listMode, type Patch, type PatchContext } from "../../envoy/patch/patch.ts";
import { NO_OUTCOME, type PatchOutcome } from "../../envoy/patch/trace.ts";
import { type Bootstrap, BootstrapSchema } from "../../gen/envoy/config/bootstrap/v3/bootstrap_pb.js";
import type { ProxyView } from "../../model/proxy.ts";
import { encode } from "../../wire/encode.ts";
import type { PatchPlan, Plans } from "./plan.ts";

/** A bootstrap after patches, and what they did. */
export interface PatchedBootstrap {
  readonly bootstrap: Bootstrap;
  readonly outcome: PatchOutcome;
}

/**
 * Applies the patches of EnvoyFilters for `BOOTSTRAP` to the bootstrap of a proxy, which is not modified. Whoever makes a bootstrap calls
 * this, with the plan of the proxy it is for. A patch whose result Envoy would not start with is left out.
 */
export function patchBootstrap(bootstrap: Bootstrap, plan: PatchPlan, view: Pick<ProxyView, "type">): PatchedBootstrap {
  const patches = plan.patches.filter((patch) => patch.applyTo === "BOOTSTRAP" && meansProxy(patch, view));
  if (patches.length === 0) return { bootstrap, outcome: NO_OUTCOME };
  const { body, outcome } = applyPatches({
    schema: BootstrapSchema,
    body: encode(BootstrapSchema, bootstrap),
    patches,
    registry: plan.registry,
    patch: (message, some, trace) => {
      for (const patch of some) {
        trace.match(patch);
        trace.apply(patch, () => {
          mergeInto({ schema: BootstrapSchema, lists: listMode(patch) }, message, contentFor(patch, BootstrapSchema));
          return true;
        });
      }
      return message;
    },
  });
  return { bootstrap: body === undefined ? bootstrap : fromBinary(BootstrapSchema, body), outcome };
}

/** A bootstrap has no sides: a patch for one of a sidecar's is for the sidecar. */
function meansProxy(patch: Patch, { type }: Pick<ProxyView, "type">): boolean {
  const sides: readonly PatchContext[] = type === "router" ? ["GATEWAY"] : ["SIDECAR_INBOUND", "SIDECAR_OUTBOUND"];
  return sides.some((side) => inContext(patch, side));
}

/** The same by proxy, for those who hold the plans of a mesh. */
export const patchBootstrapOf = (plans: Plans, view: ProxyView, bootstrap: Bootstrap): PatchedBootstrap =>
  patchBootstrap(bootstrap, plans.of(view), view);
