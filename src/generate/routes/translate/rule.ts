import { msOfDuration } from "../../../base/duration.ts";
import { matchesLabels } from "../../../base/labels.ts";
import { parseOutboundClusterName } from "../../../envoy/cluster/index.ts";
import { soleDestination } from "../../../envoy/route/action.ts";
import type {
  ActionInput,
  DestinationInput,
  HashPolicyInput,
  MirrorInput,
  RewriteInput,
  RouteInput,
} from "../../../envoy/route/route-input.ts";
import type { Destination } from "../../../gen/istio/networking/v1alpha3/shared_pb.js";
import {
  HTTPRedirect_RedirectPortSelection as DerivePort,
  type HTTPMatchRequest,
  type HTTPRetry,
  type HTTPRoute,
} from "../../../gen/istio/networking/v1alpha3/virtual_service_pb.js";
import type { Session } from "../../../model/session.ts";
import type { ResolvedVirtualService } from "../../context.ts";
import { shareOf, translateCors, translateFault } from "./filters.ts";
import { hostRewriteOf, joinChanges, requestChanges, responseChanges } from "./headers.ts";
import { ANY_REQUEST, takesEverything, translateMatch } from "./match.ts";
import { translateRetry } from "./retry.ts";

/** Where rules are translated for: who calls, through which gateway, on which port, and how destinations resolve there. */
export interface RuleSite {
  /** "mesh", or "ns/name" of a Gateway. */
  readonly gateway: string;
  readonly port: number;
  /** TLS ends at this listener. */
  readonly secure: boolean;
  readonly namespace: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly defaultTimeoutMs: number;
  readonly defaultRetry: HTTPRetry | undefined;
  /** The cluster a destination means here, and the hash policy its DestinationRule asks for. */
  readonly resolve: (destination: Destination) => { readonly cluster: string; readonly hashPolicy: HashPolicyInput | undefined };
  /** How requests to a host are kept at one endpoint, if they are. */
  readonly sessionOf: (host: string) => Session | undefined;
  /** Rewritten hosts are passed on in `x-forwarded-host`. */
  readonly forwardHost: boolean;
}

/** The routes of a VirtualService at a site, in order; what can never be reached is left out. */
export function translateRules(service: ResolvedVirtualService, site: RuleSite): readonly RouteInput[] {
  const routes: RouteInput[] = [];
  for (const rule of service.spec.http) {
    const matches = rule.match.filter((match) => appliesAt(match, site));
    if (rule.match.length > 0 && matches.length === 0) continue;
    for (const match of rule.match.length === 0 ? [undefined] : matches) {
      const route = routeOf(service, rule, { match, site });
      if (route === undefined) continue;
      routes.push(route);
      if (takesEverything(route.match)) return routes;
    }
  }
  return routes;
}

/** Gateways and the client's own attributes are two ways to say whom a match is for: where gateways are named, the others are not asked. */
function appliesAt(match: HTTPMatchRequest, site: RuleSite): boolean {
  if (match.port !== 0 && match.port !== site.port) return false;
  if (match.gateways.length > 0) return match.gateways.includes(site.gateway);
  if (match.sourceNamespace !== "" && match.sourceNamespace !== site.namespace) return false;
  return matchesLabels(match.sourceLabels, site.labels);
}

function routeOf(
  service: ResolvedVirtualService,
  rule: HTTPRoute,
  { match, site }: { match: HTTPMatchRequest | undefined; site: RuleSite },
): RouteInput | undefined {
  const action = actionOf(rule, site);
  if (action === undefined) return undefined;
  const translated = match === undefined ? ANY_REQUEST : translateMatch(match);
  const [only, ...others] = rule.route;
  const single = action.kind === "route" && others.length === 0 ? only?.headers : undefined;
  return {
    name: match?.name ? `${rule.name}.${match.name}` : rule.name,
    match: translated,
    action,
    request: joinChanges(requestChanges(rule.headers), requestChanges(single)),
    response: joinChanges(responseChanges(rule.headers), responseChanges(single)),
    cors: translateCors(rule.corsPolicy),
    fault: translateFault(rule.fault),
    ...sessionOfRule(rule, action, site),
    statPrefix: match?.statPrefix ?? "",
    operation: `${operationTarget(action) ?? `${service.name}:${site.port}`}${operationPath(translated.path)}`,
    origin: `/apis/networking.istio.io/v1/namespaces/${service.namespace}/virtual-service/${service.name}`,
  };
}

/** A route has one session: of several destinations, that of the first that has any. */
function sessionOfRule(rule: HTTPRoute, action: ActionInput, site: RuleSite): Pick<RouteInput, "session"> {
  if (action.kind !== "route") return {};
  for (const { destination } of rule.route) {
    const session = destination && site.sessionOf(destination.host);
    if (session !== undefined) return { session };
  }
  return {};
}

/** Traces name requests after where they go, or after the VirtualService where that is more than one place. */
function operationTarget(action: ActionInput): string | undefined {
  const only = action.kind === "route" ? soleDestination(action) : undefined;
  const cluster = only === undefined ? undefined : parseOutboundClusterName(only.cluster);
  return cluster === undefined ? undefined : `${cluster.host}:${cluster.port}`;
}

const operationPath = (path: RouteInput["match"]["path"]): string =>
  path === undefined ? "/*" : path.kind === "prefix" ? `${path.value}*` : path.value;

function actionOf(rule: HTTPRoute, site: RuleSite): ActionInput | undefined {
  if (rule.redirect !== undefined) return redirectOf(rule.redirect, site);
  if (rule.directResponse !== undefined) return directResponseOf(rule.directResponse);
  const weighted = rule.route.length === 1 ? rule.route : rule.route.filter(({ weight }) => weight > 0);
  const resolved = weighted.flatMap((route) =>
    route.destination === undefined ? [] : [{ route, target: site.resolve(route.destination) }],
  );
  if (resolved.length === 0) return undefined;
  const hashPolicies = resolved.map(({ target }) => target.hashPolicy).filter((policy) => policy !== undefined);
  const destinations: DestinationInput[] = resolved.map(({ route, target }) => ({
    cluster: target.cluster,
    weight: rule.route.length === 1 ? 0 : route.weight,
    request: requestChanges(route.headers),
    response: responseChanges(route.headers),
    hostRewrite: hostRewriteOf(route.headers),
  }));
  return {
    kind: "route",
    destinations,
    timeoutMs: rule.timeout === undefined ? site.defaultTimeoutMs : msOfDuration(rule.timeout),
    retry: translateRetry(rule.retries, site.defaultRetry, { hashed: rule.route.length === 1 && hashPolicies.length > 0 }),
    rewrite: rewriteOf(rule),
    mirrors: mirrorsOf(rule, site),
    hashPolicies,
    ...(site.forwardHost && rule.rewrite !== undefined && { forwardHost: true }),
  };
}

/** A host set by `headers.request.set` is a rewrite too; an explicit `rewrite.authority` goes before it. */
function rewriteOf(rule: HTTPRoute): RewriteInput | undefined {
  const { rewrite } = rule;
  const authority = rewrite?.authority || hostRewriteOf(rule.headers);
  if (rewrite === undefined && authority === undefined) return undefined;
  const regex = rewrite?.uriRegexRewrite;
  return {
    prefix: regex === undefined && rewrite !== undefined && rewrite.uri !== "" ? rewrite.uri : undefined,
    regex: regex === undefined ? undefined : { pattern: regex.match, substitution: regex.rewrite },
    authority,
  };
}

function mirrorsOf(rule: HTTPRoute, site: RuleSite): readonly MirrorInput[] {
  const listed = rule.mirrors.map(({ destination, percentage }) => ({
    destination,
    share: percentage === undefined ? ALL : shareOf(percentage, 0),
  }));
  const share =
    rule.mirrorPercentage !== undefined
      ? shareOf(rule.mirrorPercentage, 0)
      : rule.mirrorPercent !== undefined
        ? shareOf(undefined, rule.mirrorPercent)
        : ALL;
  const single = rule.mirror === undefined ? [] : [{ destination: rule.mirror, share }];
  return [...listed, ...single]
    .filter(({ share: wanted }) => wanted.numerator > 0)
    .flatMap(({ destination, share: wanted }) =>
      destination === undefined ? [] : [{ cluster: site.resolve(destination).cluster, share: wanted }],
    );
}

const ALL = { numerator: 100, of: "hundred" } as const;

function redirectOf(redirect: NonNullable<HTTPRoute["redirect"]>, site: RuleSite): ActionInput {
  const { redirectPort } = redirect;
  const wanted =
    redirectPort.case === "port"
      ? redirectPort.value
      : redirectPort.case === "derivePort" && redirectPort.value === DerivePort.FROM_REQUEST_PORT
        ? site.port
        : undefined;
  // A port that the scheme implies is not written: `http://host:80/` and `http://host/` are the same place.
  const scheme = redirect.scheme || (site.secure ? "https" : "http");
  const port = (scheme === "http" && wanted === 80) || (scheme === "https" && wanted === 443) ? undefined : wanted;
  return {
    kind: "redirect",
    path: redirect.uri,
    prefixRewrite: redirect.prefixRewrite || undefined,
    authority: redirect.authority,
    scheme: redirect.scheme,
    port,
    code: redirect.redirectCode || 301,
  };
}

function directResponseOf(response: NonNullable<HTTPRoute["directResponse"]>): ActionInput {
  const specifier = response.body?.specifier;
  const body =
    specifier?.case === "string"
      ? { text: specifier.value }
      : specifier?.case === "bytes"
        ? { bytes: Buffer.from(specifier.value).toString("base64") }
        : undefined;
  return { kind: "directResponse", status: response.status, body };
}
