import { hostsOverlap, matchesHost } from "../../base/hostname.ts";
import type { ConfigObject } from "../../config/object.ts";
import type { Query } from "../../engine/index.ts";
import { MeshConfig_OutboundTrafficPolicy_Mode } from "../../gen/istio/mesh/v1alpha1/mesh_config_pb.js";
import {
  CaptureMode,
  type IstioEgressListener,
  OutboundTrafficPolicy_Mode,
  type Sidecar,
} from "../../gen/istio/networking/v1alpha3/sidecar_pb.js";
import type { HTTPMatchRequest } from "../../gen/istio/networking/v1alpha3/virtual_service_pb.js";
import { refOf, type ServiceRef } from "../../model/service.ts";
import { type EgressScope, type GenerateContext, type Scope, type ScopedService, type ScopeKey, scopeId } from "../context.ts";
import { compareText } from "./precedence.ts";
import { MESH_GATEWAY, type VirtualServiceLookups } from "./virtual-services.ts";
import type { VisibleServices } from "./visible-services.ts";

type Context = Pick<GenerateContext, "engine" | "inputs" | "registry" | "settings">;

interface Parts {
  readonly ctx: Context;
  readonly services: VisibleServices;
  readonly virtualServices: VirtualServiceLookups;
}

/** What a Sidecar (or its absence) lets a namespace see. */
export function defineScopes(parts: Parts): Query<ScopeKey, Scope> {
  return parts.ctx.engine.query<ScopeKey, Scope>({
    name: "scope",
    id: scopeId,
    compute: (key) => {
      const sidecar =
        key.sidecar === undefined ? undefined : (parts.ctx.inputs.objects.get(key.sidecar) as ConfigObject<Sidecar> | undefined);
      const egress =
        sidecar === undefined || sidecar.spec.egress.length === 0
          ? [wholeMesh(parts, key.namespace)]
          : sidecar.spec.egress.map((listener) => importedBy(parts, key.namespace, listener));
      return { ...key, egress, services: union(egress), ...outboundPolicy(parts.ctx, sidecar?.spec, key.namespace) };
    },
  });
}

function wholeMesh(parts: Parts, namespace: string): EgressScope {
  const services = parts.services.visibleTo(namespace);
  const virtualServices = parts.virtualServices.boundTo({ gateway: MESH_GATEWAY, namespace });
  return {
    port: undefined,
    bind: "",
    captureMode: "DEFAULT",
    services,
    virtualServices,
    destinations: hiddenDestinations(parts, namespace, { services, virtualServices }),
  };
}

/** As in Istio a rule may lead to services that its clients' own namespace declares, whomever they are exported to. */
function hiddenDestinations(
  parts: Parts,
  namespace: string,
  { services, virtualServices }: Pick<EgressScope, "services" | "virtualServices">,
): readonly ScopedService[] {
  const hidden = parts.services.hiddenFromOwn(namespace);
  if (hidden.length === 0) return [];
  const seen = new Set(services.map(({ host }) => host));
  return destinationsOf(parts, virtualServices, namespace).filter(({ host }) => hidden.includes(host) && !seen.has(host));
}

interface HostPattern {
  readonly namespace: string;
  readonly host: string;
  /** What it matches is left out, whatever else asks for it. */
  readonly excludes: boolean;
}

function importedBy(parts: Parts, namespace: string, listener: IstioEgressListener): EgressScope {
  const all = listener.hosts.map((text) => patternOf(text, namespace));
  const patterns = all.filter(({ excludes }) => !excludes);
  const unwanted = all.filter(({ excludes }) => excludes);
  const matches = (among: readonly HostPattern[], owner: string, host: string): boolean =>
    among.some((pattern) => (pattern.namespace === "*" || pattern.namespace === owner) && matchesHost(pattern.host, host));
  const wanted = (owner: string, host: string): boolean => matches(patterns, owner, host) && !matches(unwanted, owner, host);
  const virtualServices = parts.virtualServices.boundTo({ gateway: MESH_GATEWAY, namespace }).filter((key) => {
    const resolved = parts.virtualServices.virtualService(key);
    return (
      resolved?.spec.hosts.some(
        (host) =>
          !matches(unwanted, resolved.namespace, host) &&
          patterns.some(
            (pattern) => (pattern.namespace === "*" || pattern.namespace === resolved.namespace) && hostsOverlap(pattern.host, host),
          ),
      ) === true
    );
  });
  const port =
    listener.port === undefined
      ? undefined
      : { number: listener.port.number, protocol: listener.port.protocol.toUpperCase(), name: listener.port.name };
  // A generic proxy leads to services on any port; all other listeners to those that have theirs.
  const number = port?.protocol === "HTTP_PROXY" ? undefined : port?.number || undefined;
  const direct = importedServices(parts, namespace, wanted).flatMap((ref) => atPort(parts.ctx, ref, number));
  const hosts = new Set(direct.map(({ host }) => host));
  const behind = destinationsOf(parts, virtualServices, namespace)
    .filter(({ host }) => !hosts.has(host))
    .flatMap((destination) => (number === undefined ? destination : atPort(parts.ctx, destination, number)));
  return {
    port,
    bind: listener.bind,
    captureMode: captureModeOf(listener.captureMode),
    services: direct,
    virtualServices,
    destinations: behind,
  };
}

/** `ns/host` of a Sidecar: `.` is the own namespace, `*` all; `~` before it leaves out what it matches (`~/*` is nothing at all). */
function patternOf(text: string, own: string): HostPattern {
  const slash = text.indexOf("/");
  const written = slash < 0 ? "*" : text.slice(0, slash);
  const excludes = written.startsWith("~");
  const namespace = excludes ? written.slice(1) : written;
  return { namespace: namespace === "." ? own : namespace || "*", host: text.slice(slash + 1), excludes };
}

/** All visible declarations of a host are candidates here: a pattern may name the namespace. */
function importedServices(
  { ctx, services }: Parts,
  viewer: string,
  wanted: (owner: string, host: string) => boolean,
): readonly ServiceRef[] {
  return services.visibleTo(viewer).flatMap((ref) => {
    if (ctx.registry.servicesByHost(ref.host).length === 1) return wanted(ref.namespace, ref.host) ? [ref] : [];
    return services.declarations({ host: ref.host, namespace: viewer }).find((rival) => wanted(rival.namespace, rival.host)) ?? [];
  });
}

function atPort(ctx: Context, ref: ServiceRef, port: number | undefined): readonly ScopedService[] {
  if (port === undefined) return [{ ...refOf(ref), ports: undefined }];
  const has = ctx.registry.service(ref)?.ports.some(({ number }) => number === port) === true;
  return has ? [{ ...refOf(ref), ports: [port] }] : [];
}

/** Destinations of imported VirtualServices are imported too, or their routes would lead to clusters the proxy does not have. */
function destinationsOf({ services, virtualServices }: Parts, keys: readonly string[], viewer: string): readonly ScopedService[] {
  const ports = new Map<string, Set<number> | undefined>();
  const note = (host: string | undefined, port: number | undefined): void => {
    if (host === undefined) return;
    if (port === undefined || port === 0) ports.set(host, undefined);
    else if (!ports.has(host)) ports.set(host, new Set([port]));
    else ports.get(host)?.add(port);
  };
  for (const key of keys) {
    const spec = virtualServices.virtualService(key)?.spec;
    if (spec === undefined) continue;
    const http = spec.http.filter(({ match }) => isForNamespace(match, viewer));
    for (const { destination } of [...http, ...spec.tcp, ...spec.tls].flatMap((rule) => [...rule.route]))
      note(destination?.host, destination?.port?.number);
    for (const rule of http) {
      note(rule.mirror?.host, rule.mirror?.port?.number);
      for (const { destination } of rule.mirrors) note(destination?.host, destination?.port?.number);
    }
  }
  const hidden = services.hiddenFromOwn(viewer);
  return [...ports].flatMap(([host, numbers]) => {
    const ref = hidden.includes(host) ? { host, namespace: viewer } : services.visibleService({ host, namespace: viewer });
    return ref === undefined ? [] : [{ ...refOf(ref), ports: numbers === undefined ? undefined : [...numbers].sort((a, b) => a - b) }];
  });
}

/** Whether some match of a rule may hold for clients of a namespace. */
const isForNamespace = (matches: readonly HTTPMatchRequest[], namespace: string): boolean =>
  matches.length === 0 || matches.some(({ sourceNamespace }) => sourceNamespace === "" || sourceNamespace === namespace);

function union(egress: readonly EgressScope[]): readonly ScopedService[] {
  const [only] = egress;
  if (egress.length === 1 && only !== undefined && only.destinations.length === 0) return only.services;
  const merged = new Map<string, ScopedService>();
  for (const service of egress.flatMap((listener) => [...listener.services, ...listener.destinations])) {
    const seen = merged.get(service.host);
    const ports =
      seen === undefined
        ? service.ports
        : seen.ports === undefined || service.ports === undefined
          ? undefined
          : [...new Set([...seen.ports, ...service.ports])].sort((a, b) => a - b);
    merged.set(service.host, { ...refOf(seen ?? service), ports });
  }
  return [...merged.values()].sort((a, b) => compareText(a.host, b.host));
}

const MESH_POLICY = {
  [MeshConfig_OutboundTrafficPolicy_Mode.REGISTRY_ONLY]: "REGISTRY_ONLY",
  [MeshConfig_OutboundTrafficPolicy_Mode.ALLOW_ANY]: "ALLOW_ANY",
  [MeshConfig_OutboundTrafficPolicy_Mode.ALLOW_ANY_DYNAMIC_DNS]: "ALLOW_ANY_DYNAMIC_DNS",
} as const satisfies Record<MeshConfig_OutboundTrafficPolicy_Mode, Scope["outboundPolicy"]>;

function outboundPolicy(ctx: Context, sidecar: Sidecar | undefined, _namespace: string): Pick<Scope, "outboundPolicy" | "egressProxy"> {
  const own = sidecar?.outboundTrafficPolicy;
  if (own !== undefined) {
    const proxy = own.egressProxy;
    return {
      outboundPolicy: own.mode === OutboundTrafficPolicy_Mode.ALLOW_ANY ? "ALLOW_ANY" : "REGISTRY_ONLY",
      egressProxy: proxy === undefined ? undefined : { host: proxy.host, subset: proxy.subset, port: proxy.port?.number ?? 0 },
    };
  }
  const mesh = ctx.inputs.mesh.get("mesh")?.outboundTrafficPolicy;
  return {
    outboundPolicy: mesh === undefined ? "ALLOW_ANY" : MESH_POLICY[mesh.mode],
    egressProxy: undefined,
  };
}

function captureModeOf(mode: CaptureMode): EgressScope["captureMode"] {
  return mode === CaptureMode.NONE ? "NONE" : mode === CaptureMode.IPTABLES ? "IPTABLES" : "DEFAULT";
}
