import { resolveShortName } from "../../base/hostname.ts";
import { type ConfigObject, objectKey } from "../../config/object.ts";
import type { VirtualService } from "../../gen/istio/networking/v1alpha3/virtual_service_pb.js";
import type { GenerateContext } from "../context.ts";
import { exportRank, isExported } from "../lookups/export-to.ts";
import { byPrecedence } from "../lookups/precedence.ts";
import { MESH_GATEWAY } from "../lookups/virtual-services.ts";
import { type Finding, finding } from "./finding.ts";

type Context = Pick<GenerateContext, "engine" | "inputs" | "settings">;

/** A VirtualService with HTTP rules for sidecars, as far as conflicts go. */
interface Claim {
  readonly key: string;
  readonly name: string;
  readonly namespace: string;
  readonly createdAt: number;
  readonly hosts: readonly string[];
  readonly exportTo: readonly string[];
}

/**
 * Hosts that another VirtualService has for the same sidecars: for those a host has one VirtualService, and rules of others have no effect. On
 * gateways they are joined, so nothing conflicts there.
 */
export function defineHostConflicts(ctx: Context): (object: ConfigObject<VirtualService>) => readonly Finding[] {
  const claim = ctx.engine.query<string, Claim | undefined>({
    name: "problems.hostClaim",
    compute: (key) => claimOf(ctx, ctx.inputs.objects.get(key) as ConfigObject<VirtualService> | undefined),
  });
  const byHost = ctx.engine.query<"", ReadonlyMap<string, readonly Claim[]>>({
    name: "problems.hostClaims",
    compute: () => {
      const claims = ctx.inputs.objects.keys("kind", "VirtualService").flatMap((key) => claim(key) ?? []);
      const pairs = claims.flatMap((one) => one.hosts.map((host) => [host, one] as const));
      const groups = [...Map.groupBy(pairs, ([host]) => host)].filter(([, group]) => group.length > 1);
      return new Map(groups.map(([host, group]) => [host, group.map(([, one]) => one).sort(byPrecedence)]));
    },
  });
  const rivals = ctx.engine.query<string, readonly Claim[]>({ name: "problems.hostRivals", compute: (host) => byHost("").get(host) ?? [] });
  return (object) => {
    const own = claim(objectKey(object));
    if (own === undefined) return [];
    return own.hosts.flatMap((host, index) => {
      const winner = winnerOver(own, rivals(host));
      if (winner === undefined) return [];
      const message = `VirtualService ${winner.namespace}/${winner.name} goes before this one and has the host ${host} for sidecars; the rules here have no effect on them`;
      return [finding("conflict.host", ["hosts", index], message)];
    });
  };
}

function claimOf({ inputs, settings }: Context, object: ConfigObject<VirtualService> | undefined): Claim | undefined {
  if (object === undefined || object.spec.http.length === 0) return undefined;
  const { name, namespace, createdAt, spec } = object;
  if (spec.gateways.length > 0 && !spec.gateways.includes(MESH_GATEWAY)) return undefined;
  const fallback = inputs.mesh.get("mesh")?.defaultVirtualServiceExportTo ?? [];
  const exportTo = spec.exportTo.length > 0 ? spec.exportTo : fallback.length > 0 ? fallback : ["*"];
  return {
    key: objectKey(object),
    name,
    namespace,
    createdAt,
    hosts: spec.hosts.map((host) => resolveShortName(host, namespace, settings.clusterDomain)),
    exportTo,
  };
}

/** Stands for a namespace that nobody names. */
const ANYWHERE = "";

/** Who has the host in a claim's place wherever the claim is seen; undefined where it has it somewhere. */
function winnerOver(own: Claim, rivals: readonly Claim[]): Claim | undefined {
  const viewers = own.exportTo.includes("*") ? [ANYWHERE] : own.exportTo.map((entry) => (entry === "." ? own.namespace : entry));
  const winners = viewers.map((viewer) => firstAt(viewer, rivals)).filter((first) => first !== undefined);
  return winners.some(({ key }) => key === own.key) ? undefined : winners[0];
}

/** `rivals` are in order of precedence; what is meant for a namespace goes before what is meant for all. */
function firstAt(viewer: string, rivals: readonly Claim[]): Claim | undefined {
  const rank = ({ exportTo, namespace: owner }: Claim): number => exportRank(exportTo, [], { owner, viewer });
  return rivals
    .filter(({ exportTo, namespace: owner }) => isExported(exportTo, [], { owner, viewer }))
    .toSorted((a, b) => rank(a) - rank(b))[0];
}
