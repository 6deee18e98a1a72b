import { resolveShortName } from "../../base/hostname.ts";
import { type ConfigObject, objectKey } from "../../config/object.ts";
import type { FieldPath } from "../../config/problem.ts";
import type { Destination } from "../../gen/istio/networking/v1alpha3/shared_pb.js";
import type { HTTPRoute, VirtualService } from "../../gen/istio/networking/v1alpha3/virtual_service_pb.js";
import type { GenerateContext } from "../context.ts";
import { isExported } from "../lookups/export-to.ts";
import { MESH_GATEWAY } from "../lookups/virtual-services.ts";
import { type Finding, finding } from "./finding.ts";
import type { KnownNames } from "./known-names.ts";

type Context = Pick<GenerateContext, "inputs" | "settings">;

/** Names in a VirtualService that lead nowhere. What they are part of has no effect, or answers 503; the rest of the object has. */
export function danglingNames(ctx: Context, object: ConfigObject<VirtualService>, known: KnownNames): readonly Finding[] {
  const { spec } = object;
  const gateways = spec.gateways.flatMap((name, index) => danglingGateway(name, { at: ["gateways", index], object, known }));
  const delegates = spec.http.flatMap((rule, index) => danglingDelegate(ctx, rule, { at: ["http", index, "delegate"], object }));
  return [...gateways, ...delegates, ...destinationsOf(spec).flatMap((one) => danglingDestination(ctx, one, { object, known }))];
}

interface Where {
  readonly at: FieldPath;
  readonly object: ConfigObject<VirtualService>;
}

function danglingGateway(name: string, { at, object, known }: Where & { readonly known: KnownNames }): readonly Finding[] {
  const key = name.includes("/") ? name : `${object.namespace}/${name}`;
  return name === MESH_GATEWAY || known.hasGateway(key) ? [] : [finding("reference.gateway", at, `there is no Gateway ${key}`)];
}

function danglingDelegate({ inputs }: Context, { delegate }: HTTPRoute, { at, object }: Where): readonly Finding[] {
  if (delegate === undefined) return [];
  const namespace = delegate.namespace || object.namespace;
  const name = `${namespace}/${delegate.name}`;
  const target = inputs.objects.get(objectKey({ kind: "VirtualService", namespace, name: delegate.name })) as
    | ConfigObject<VirtualService>
    | undefined;
  const found = (message: string): readonly Finding[] => [finding("reference.delegate", at, message)];
  if (target === undefined) return found(`there is no VirtualService ${name}`);
  if (target.spec.hosts.length > 0) return found(`VirtualService ${name} has hosts, so it is no delegate`);
  const fallback = inputs.mesh.get("mesh")?.defaultVirtualServiceExportTo ?? [];
  const visible = isExported(target.spec.exportTo, fallback, { owner: namespace, viewer: object.namespace });
  return visible ? [] : found(`VirtualService ${name} is not exported to namespace ${object.namespace}`);
}

interface Placed {
  readonly destination: Destination;
  readonly at: FieldPath;
}

/** Every destination of a VirtualService and where it is written. */
function destinationsOf({ http, tcp, tls }: VirtualService): readonly Placed[] {
  const placed = (destination: Destination | undefined, ...at: FieldPath): readonly Placed[] =>
    destination === undefined ? [] : [{ destination, at }];
  return [
    ...http.flatMap((rule, index) => [
      ...rule.route.flatMap(({ destination }, route) => placed(destination, "http", index, "route", route, "destination")),
      ...placed(rule.mirror, "http", index, "mirror"),
      ...rule.mirrors.flatMap(({ destination }, mirror) => placed(destination, "http", index, "mirrors", mirror, "destination")),
    ]),
    ...tcp.flatMap((rule, index) =>
      rule.route.flatMap(({ destination }, route) => placed(destination, "tcp", index, "route", route, "destination")),
    ),
    ...tls.flatMap((rule, index) =>
      rule.route.flatMap(({ destination }, route) => placed(destination, "tls", index, "route", route, "destination")),
    ),
  ];
}

/** One message a destination, for what comes first: without the service nothing else of it can be right. */
function danglingDestination(
  { settings }: Context,
  { destination, at }: Placed,
  { object, known }: { readonly object: ConfigObject<VirtualService>; readonly known: KnownNames },
): readonly Finding[] {
  const host = resolveShortName(destination.host, object.namespace, settings.clusterDomain);
  const ports = known.portsOf(host);
  if (ports === undefined) return [finding("reference.host", [...at, "host"], `no service has the host ${host}`)];
  const { subset, port } = destination;
  if (subset !== "" && !known.subsetsOf(host).includes(subset))
    return [finding("reference.subset", [...at, "subset"], `no DestinationRule gives ${host} a subset ${JSON.stringify(subset)}`)];
  const number = port?.number ?? 0;
  if (number !== 0 && !ports.includes(number))
    return [finding("reference.port", [...at, "port", "number"], `${host} has no port ${number}, only ${ports.join(", ") || "none"}`)];
  return [];
}
