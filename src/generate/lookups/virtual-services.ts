import { resolveShortName } from "../../base/hostname.ts";
import { type ConfigObject, objectKey } from "../../config/object.ts";
import type { Query } from "../../engine/index.ts";
import type { Destination } from "../../gen/istio/networking/v1alpha3/shared_pb.js";
import type { HTTPRoute, VirtualService } from "../../gen/istio/networking/v1alpha3/virtual_service_pb.js";
import type { GenerateContext, ResolvedVirtualService } from "../context.ts";
import { mergeDelegate } from "./delegates.ts";
import { exportRank, isExported } from "./export-to.ts";
import { byPrecedence } from "./precedence.ts";

/** The reserved gateway name of all sidecars. */
export const MESH_GATEWAY = "mesh";

export interface VirtualServiceLookups {
  readonly virtualService: Query<string, ResolvedVirtualService | undefined>;
  /** Keys of those bound to a gateway ("mesh" or "ns/name") and visible in a namespace, in order of precedence. */
  readonly boundTo: Query<BindingQuery, readonly string[]>;
  /** The work behind `boundTo` in small steps. */
  readonly steps: () => Iterable<void>;
}

export interface BindingQuery {
  readonly gateway: string;
  readonly namespace: string;
}

type Context = Pick<GenerateContext, "engine" | "inputs" | "settings">;

/** What the order and visibility of VirtualServices depend on; their rules are not read here, so editing a route moves nothing. */
interface Binding {
  readonly key: string;
  readonly name: string;
  readonly namespace: string;
  readonly createdAt: number;
  readonly gateways: readonly string[];
  readonly exportTo: readonly string[];
}

/** Defines them on an engine. Which VirtualServices are bound where depends on their heads alone: an edit of rules re-runs only who reads those. */
export function defineVirtualServices(ctx: Context): VirtualServiceLookups {
  const raw = (key: string): ConfigObject<VirtualService> | undefined =>
    ctx.inputs.objects.get(key) as ConfigObject<VirtualService> | undefined;
  const binding = ctx.engine.query<string, Binding | undefined>({
    name: "virtualServiceBinding",
    eager: true,
    compute: (key) => bindingOf(raw(key)),
  });
  const byGateway = ctx.engine.query<string, readonly Binding[]>({
    name: "virtualServicesByGateway",
    compute: (gateway) =>
      ctx.inputs.objects
        .keys("kind", "VirtualService")
        .map((key) => binding(key))
        .filter((entry) => entry?.gateways.includes(gateway) === true)
        .filter((entry) => entry !== undefined)
        .sort(byPrecedence),
  });
  const fallback = (): readonly string[] => ctx.inputs.mesh.get("mesh")?.defaultVirtualServiceExportTo ?? [];
  return {
    *steps() {
      for (const key of ctx.inputs.objects.keys("kind", "VirtualService")) {
        binding.try(key);
        yield;
      }
    },
    virtualService: defineResolved(ctx, raw),
    boundTo: ctx.engine.query<BindingQuery, readonly string[]>({
      name: "virtualServicesBoundTo",
      id: ({ gateway, namespace }) => `${gateway}|${namespace}`,
      compute: ({ gateway, namespace }) => {
        const visible = byGateway(gateway).filter(({ exportTo, namespace: owner }) =>
          isExported(exportTo, fallback(), { owner, viewer: namespace }),
        );
        const rank = (entry: Binding): number => exportRank(entry.exportTo, fallback(), { owner: entry.namespace, viewer: namespace });
        return visible.toSorted((a, b) => rank(a) - rank(b) || byPrecedence(a, b)).map(({ key }) => key);
      },
    }),
  };
}

/** Hosts of a delegate are empty: such an object is only ever used through the rule that names it. */
function bindingOf(object: ConfigObject<VirtualService> | undefined): Binding | undefined {
  if (object === undefined || object.spec.hosts.length === 0) return undefined;
  const { name, namespace, createdAt, spec } = object;
  const gateways = spec.gateways.length === 0 ? [MESH_GATEWAY] : spec.gateways.map((gateway) => fullGateway(gateway, namespace));
  return { key: objectKey(object), name, namespace, createdAt, gateways, exportTo: spec.exportTo };
}

const fullGateway = (gateway: string, namespace: string): string =>
  gateway === MESH_GATEWAY || gateway.includes("/") ? gateway : `${namespace}/${gateway}`;

function defineResolved(
  ctx: Context,
  raw: (key: string) => ConfigObject<VirtualService> | undefined,
): Query<string, ResolvedVirtualService | undefined> {
  const fallback = (): readonly string[] => ctx.inputs.mesh.get("mesh")?.defaultVirtualServiceExportTo ?? [];
  const delegateRules = (rule: HTTPRoute, from: string): readonly HTTPRoute[] => {
    const namespace = rule.delegate?.namespace || from;
    const target = raw(objectKey({ kind: "VirtualService", namespace, name: rule.delegate?.name ?? "" }));
    if (target === undefined || target.spec.hosts.length > 0) return [];
    if (!isExported(target.spec.exportTo, fallback(), { owner: namespace, viewer: from })) return [];
    return withFullHosts(target.spec, namespace, ctx.settings.clusterDomain).http;
  };
  return ctx.engine.query<string, ResolvedVirtualService | undefined>({
    name: "virtualService",
    eager: true,
    compute: (key) => {
      const object = raw(key);
      if (object === undefined) return undefined;
      const spec = withFullHosts(object.spec, object.namespace, ctx.settings.clusterDomain);
      spec.http = spec.http.flatMap((rule) =>
        rule.delegate === undefined ? [rule] : mergeDelegate(rule, delegateRules(rule, object.namespace)),
      );
      return { key, namespace: object.namespace, name: object.name, createdAt: object.createdAt, spec };
    },
  });
}

/** Full host and gateway names throughout: `web` written in namespace `shop` means `web.shop.svc.cluster.local`. What names none is not copied. */
function withFullHosts(original: VirtualService, namespace: string, domain: string): VirtualService {
  const full = (host: string): string => resolveShortName(host, namespace, domain);
  const gateways = <M extends { readonly gateways: readonly string[] }>(match: M): M =>
    match.gateways.length === 0 ? match : { ...match, gateways: match.gateways.map((gateway) => fullGateway(gateway, namespace)) };
  const meant = (destination: Destination): Destination => ({ ...destination, host: full(destination.host) });
  const routed = <R extends { readonly destination?: Destination | undefined }>(route: R): R =>
    route.destination === undefined ? route : { ...route, destination: meant(route.destination) };
  return {
    ...original,
    hosts: original.hosts.map((host) => full(host).toLowerCase()),
    gateways: original.gateways.map((gateway) => fullGateway(gateway, namespace)),
    http: original.http.map((rule) => ({
      ...rule,
      route: rule.route.map(routed),
      ...(rule.mirror !== undefined && { mirror: meant(rule.mirror) }),
      mirrors: rule.mirrors.map(routed),
      match: rule.match.map(gateways),
    })),
    tcp: original.tcp.map((rule) => ({ ...rule, route: rule.route.map(routed), match: rule.match.map(gateways) })),
    tls: original.tls.map((rule) => ({ ...rule, route: rule.route.map(routed), match: rule.match.map(gateways) })),
  };
}
