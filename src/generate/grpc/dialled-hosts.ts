import { matchesHost } from "../../base/hostname.ts";
import type { Query } from "../../engine/index.ts";
import type { ServicePort } from "../../model/service.ts";
import { type GenerateContext, type ScopedService, type ScopeKey, scopeId } from "../context.ts";

/** A service at a port, as the clients of a scope dial it. */
export interface Dialled {
  readonly service: ScopedService;
  readonly port: ServicePort;
  /** Key of the VirtualService that speaks for it, if any does. */
  readonly rules: string | undefined;
}

/** What the clients of a scope can dial. Both are for use inside queries. */
export interface DialledHosts {
  /** The service a full host name means, where the scope imports it and it has the port. */
  find(scope: ScopeKey, host: string, port: number): Dialled | undefined;
  /** Every `host:port` of a scope. */
  all(scope: ScopeKey): readonly string[];
}

/** An import of a service: by which egress listener of the scope, since that decides whose rules apply. */
interface Import {
  readonly service: ScopedService;
  readonly listener: number;
}

interface ListenerKey {
  readonly scope: ScopeKey;
  readonly listener: number;
}

/** Who speaks for which hosts: exact names, and wildcards with the longest first. */
interface Claims {
  readonly exact: ReadonlyMap<string, string>;
  readonly wildcards: readonly { readonly host: string; readonly rules: string }[];
}

/** Defines them on an engine, by scope: which services a client may dial, and by which of their names. */
export function defineDialledHosts(ctx: GenerateContext): DialledHosts {
  const imports: Query<ScopeKey, ReadonlyMap<string, readonly Import[]>> = ctx.engine.query({
    name: "grpc.imports",
    id: scopeId,
    compute: (key: ScopeKey) => {
      const all = ctx.lookups.scope(key).egress.flatMap(({ services }, listener) => services.map((service) => ({ service, listener })));
      return Map.groupBy(all, ({ service }) => service.host);
    },
  });
  const claims = defineClaims(ctx);
  return {
    find(scope, host, number) {
      for (const { service, listener } of imports(scope).get(host) ?? []) {
        if (service.ports?.includes(number) === false) continue;
        const port = ctx.registry.service(service)?.ports.find((one) => one.number === number && one.protocol !== "UDP");
        if (port === undefined) continue;
        return { service, port, rules: speaker(claims({ scope, listener }), host) };
      }
      return undefined;
    },
    all(scope) {
      const services = [...imports(scope).values()].flatMap((list) => list.map(({ service }) => service));
      return services.flatMap((service) =>
        (ctx.registry.service(service)?.ports ?? [])
          .filter(({ number, protocol }) => protocol !== "UDP" && service.ports?.includes(number) !== false)
          .map(({ number }) => `${service.host}:${number}`),
      );
    },
  };
}

/** Hosts of VirtualServices are read apart from their rules: most changes leave them alone, and then nobody's claims are looked at again. */
function defineClaims(ctx: GenerateContext): Query<ListenerKey, Claims> {
  const hostsOf = ctx.engine.query<string, readonly string[]>({
    name: "grpc.hostsOfRules",
    compute: (key) => {
      const spec = ctx.lookups.virtualService(key)?.spec;
      return spec === undefined || spec.http.length === 0 ? [] : spec.hosts;
    },
  });
  return ctx.engine.query<ListenerKey, Claims>({
    name: "grpc.claims",
    id: ({ scope, listener }) => `${scopeId(scope)}|${listener}`,
    compute: ({ scope, listener }) => {
      const exact = new Map<string, string>();
      const wildcards: { readonly host: string; readonly rules: string }[] = [];
      for (const rules of ctx.lookups.scope(scope).egress[listener]?.virtualServices ?? []) {
        for (const host of hostsOf(rules)) {
          if (host.startsWith("*")) wildcards.push({ host, rules });
          else if (!exact.has(host)) exact.set(host, rules);
        }
      }
      return { exact, wildcards: wildcards.sort((a, b) => b.host.length - a.host.length) };
    },
  });
}

const speaker = ({ exact, wildcards }: Claims, host: string): string | undefined =>
  exact.get(host) ?? wildcards.find((wildcard) => matchesHost(wildcard.host, host))?.rules;
