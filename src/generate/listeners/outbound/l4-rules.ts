import { matchesHost } from "../../../base/hostname.ts";
import { matchesLabels } from "../../../base/labels.ts";
import type { Query } from "../../../engine/index.ts";
import type { L4MatchAttributes, TLSMatchAttributes } from "../../../gen/istio/networking/v1alpha3/virtual_service_pb.js";
import { type GenerateContext, type ScopeKey, scopeId } from "../../context.ts";
import { keyListId } from "../../lookups/key-list.ts";

/** The gateway name that means all sidecars. */
const MESH = "mesh";

interface EgressQuery extends ScopeKey {
  readonly egress: number;
}

/** VirtualServices with TCP or TLS rules. Most meshes have few, so they are looked through for each service that may be meant. */
export interface L4Rules {
  /** Keys of those of an egress listener that name a host, in order of precedence. */
  forHost(query: EgressQuery, host: string): readonly string[];
  /** Label keys that rules of a scope match clients by: only these of a proxy's labels can change its listeners. */
  readonly sourceLabelKeys: Query<ScopeKey, readonly string[]>;
}

/** A VirtualService with rules for connections. */
interface L4VirtualService {
  readonly key: string;
  readonly hosts: readonly string[];
}

export function defineL4Rules(ctx: Pick<GenerateContext, "engine" | "lookups">): L4Rules {
  const ofList = ctx.engine.query<readonly string[], readonly L4VirtualService[]>({
    name: "l4VirtualServices",
    eager: true,
    id: keyListId,
    compute: (keys) =>
      keys.flatMap((key) => {
        const spec = ctx.lookups.virtualService(key)?.spec;
        return spec === undefined || spec.tcp.length + spec.tls.length === 0 ? [] : [{ key, hosts: spec.hosts }];
      }),
  });
  const ofEgress = ({ egress, ...key }: EgressQuery): readonly L4VirtualService[] =>
    ofList(ctx.lookups.scope(key).egress[egress]?.virtualServices ?? []);
  return {
    forHost: (query, host) =>
      ofEgress(query)
        .filter(({ hosts }) => hosts.some((pattern) => matchesHost(pattern, host)))
        .map(({ key }) => key),
    sourceLabelKeys: ctx.engine.query<ScopeKey, readonly string[]>({
      name: "l4SourceLabelKeys",
      id: scopeId,
      compute: (key) => {
        const objects = ctx.lookups.scope(key).egress.flatMap((_, egress) => ofEgress({ ...key, egress }));
        const specs = objects.flatMap((object) => ctx.lookups.virtualService(object.key)?.spec ?? []);
        const matches = specs.flatMap(({ tcp, tls }) =>
          [...tcp, ...tls].flatMap((rule): readonly (L4MatchAttributes | TLSMatchAttributes)[] => rule.match),
        );
        return [...new Set(matches.flatMap(({ sourceLabels }) => Object.keys(sourceLabels)))].sort();
      },
    }),
  };
}

/** What a rule's match may ask of the client, all known when configuration is generated. */
export interface MatchSubject {
  readonly port: number;
  readonly namespace: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly gateway: string;
}

/**
 * Whether a match is about a port of a gateway, or of all sidecars. At gateways that is all that counts: who calls them is not known by labels, and
 * the address that was called is their own.
 */
export function matchesPort(
  match: L4MatchAttributes | TLSMatchAttributes,
  { port, gateway }: Pick<MatchSubject, "port" | "gateway">,
): boolean {
  return (match.port === 0 || match.port === port) && (match.gateways.length === 0 || match.gateways.includes(gateway));
}

/** Whether the part of a match that is decided now holds; what is left (SNI, destination ranges) is for Envoy. */
export function matchesSubject(match: L4MatchAttributes | TLSMatchAttributes, subject: MatchSubject): boolean {
  return (
    matchesPort(match, subject) &&
    (match.sourceNamespace === "" || match.sourceNamespace === subject.namespace) &&
    matchesLabels(match.sourceLabels, subject.labels)
  );
}

export const meshSubject = (subject: Omit<MatchSubject, "gateway">): MatchSubject => ({ ...subject, gateway: MESH });
