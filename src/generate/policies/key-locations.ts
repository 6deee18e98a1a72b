import type { ConfigObject } from "../../config/object.ts";
import type { Query } from "../../engine/index.ts";
import type { RequestAuthentication } from "../../gen/istio/security/v1beta1/request_authentication_pb.js";
import type { GenerateContext } from "../context.ts";
import { type KeyLocation, type KeyServers, keyCluster, keyLocation } from "./key-location.ts";

type Context = Pick<GenerateContext, "engine" | "inputs" | "lookups" | "registry" | "settings">;

/** Which services keys may be fetched from by Envoy. Call inside a query. */
export const keyServers = ({ lookups, registry, settings }: Pick<Context, "lookups" | "registry" | "settings">): KeyServers => ({
  visibleService(host, namespace) {
    const ref = lookups.visibleService(host, namespace);
    return ref === undefined ? undefined : registry.service(ref);
  },
  keyFetcher: settings.keyFetcher,
});

/**
 * All places from which the control plane is to fetch keys, in order; who fetches them puts them into `inputs.keySets`. Of several rules that
 * name the same place, the most patient counts.
 */
export function defineKeyLocations(ctx: Context): Query<"", readonly KeyLocation[]> {
  return ctx.engine.query<"", readonly KeyLocation[]>({
    name: "keyLocations",
    compute: () => {
      const found = new Map<string, KeyLocation>();
      const servers = keyServers(ctx);
      const policies = ctx.inputs.objects.list("kind", "RequestAuthentication") as readonly ConfigObject<RequestAuthentication>[];
      for (const { namespace, spec } of policies)
        for (const location of spec.jwtRules.map(keyLocation)) {
          if (location === undefined || keyCluster(location, namespace, servers) !== undefined) continue;
          const known = found.get(location.id);
          if (known === undefined || known.timeoutMs < location.timeoutMs) found.set(location.id, location);
        }
      return [...found.values()].toSorted((a, b) => (a.id < b.id ? -1 : 1));
    },
  });
}
