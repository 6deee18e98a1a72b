import { fromBinary } from "@bufbuild/protobuf";
import { applyPatches } from "../../envoy/patch/apply.ts";
import { matchesTable } from "../../envoy/patch/match-route.ts";
import { contentFor, inContext, type Patch, type PatchContext } from "../../envoy/patch/patch.ts";
import { patchVirtualHost } from "../../envoy/patch/patch-routes.ts";
import { splitVirtualHostName } from "../../envoy/route/route-table.ts";
import { VirtualHostSchema } from "../../gen/envoy/config/route/v3/route_components_pb.js";
import { encoded } from "../../wire/encode.ts";
import type { Encoded, ResourceSet } from "../../wire/encoded.ts";
import { VIRTUAL_HOST_TYPE } from "../../wire/type-urls.ts";
import { addsHost } from "./kinds.ts";
import type { KindRules } from "./patched-kind.ts";

/** Only sidecars have hosts that are resources of their own. */
const CONTEXT: PatchContext = "SIDECAR_OUTBOUND";

const isForTable = (patch: Patch, table: string): boolean => matchesTable(patch, table, { context: CONTEXT, ports: [] });

/** Virtual hosts that are resources of their own: each is patched by itself, under the name it would have in its table. */
export const virtualHostRules: KindRules = {
  typeUrl: VIRTUAL_HOST_TYPE,
  clash: takenDomain,
  added: addedHosts,
  patchName: (name) => splitVirtualHostName(name).host,
  scene: (plan) => {
    const patches = plan.patches.filter(
      (patch) => (patch.applyTo === "HTTP_ROUTE" || patch.applyTo === "VIRTUAL_HOST") && inContext(patch, CONTEXT),
    );
    return {
      id: "virtualHosts",
      patches,
      adds: addsHost,
      concerning: ({ name }) => {
        const { table, host } = splitVirtualHostName(name);
        const concerns = (patch: Patch): boolean =>
          !addsHost(patch) && isForTable(patch, table) && (patch.route?.vhost === undefined || patch.route.vhost === host);
        return { context: CONTEXT, patches: patches.filter(concerns) };
      },
      apply: ({ name, body }, list) =>
        applyPatches({
          schema: VirtualHostSchema,
          body,
          patches: list,
          registry: plan.registry,
          patch: (host, some, trace) => {
            const patched = patchVirtualHost({ ...host, name: splitVirtualHostName(name).host }, some, trace);
            return patched && { ...patched, name };
          },
        }),
    };
  },
};

const made = new WeakMap<Patch, Map<string, Encoded>>();

/** The host that a patch adds, once for each table that it is for. */
function addedHosts(patch: Patch, present: ResourceSet["resources"]): readonly Encoded[] {
  const tables = new Set([...present.keys()].map((name) => splitVirtualHostName(name).table));
  const known = made.get(patch) ?? new Map<string, Encoded>();
  made.set(patch, known);
  return [...tables]
    .filter((table) => isForTable(patch, table))
    .map((table) => {
      const host = contentFor(patch, VirtualHostSchema);
      const name = `${table}/${host.name}`;
      const resource = known.get(name) ?? encoded({ typeUrl: VIRTUAL_HOST_TYPE, name }, VirtualHostSchema, { ...host, name });
      known.set(name, resource);
      return resource;
    });
}

/** Envoy refuses a table that has a domain twice; the one for everything is always in the table itself. */
function takenDomain(added: Encoded, present: ResourceSet["resources"]): string | undefined {
  const { table } = splitVirtualHostName(added.name);
  const wanted = new Set(domainsOf(added));
  const others = [...present.values()].filter((host) => splitVirtualHostName(host.name).table === table);
  const taken = wanted.has("*") ? "*" : others.flatMap(domainsOf).find((domain) => wanted.has(domain));
  return taken === undefined ? undefined : `the table ${table} has the domain ${taken} already`;
}

const domains = new WeakMap<Encoded, readonly string[]>();

function domainsOf(host: Encoded): readonly string[] {
  const known = domains.get(host) ?? fromBinary(VirtualHostSchema, host.body).domains.map((domain) => domain.toLowerCase());
  domains.set(host, known);
  return known;
}
