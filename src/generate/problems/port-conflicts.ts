import { isOn } from "../../base/go-bool.ts";
import { type ConfigObject, objectKey } from "../../config/object.ts";
import type { ServiceEntry } from "../../gen/istio/networking/v1alpha3/service_entry_pb.js";
import { isTls } from "../../model/protocol.ts";
import type { GenerateContext } from "../context.ts";
import { compareText } from "../lookups/precedence.ts";
import { type Finding, finding } from "./finding.ts";

type Context = Pick<GenerateContext, "engine" | "inputs" | "registry">;

/** A port of a service whose connections nothing but the port tells from those of others. */
interface BarePort {
  readonly objectKey: string;
  readonly host: string;
  readonly namespace: string;
  readonly createdAt: number;
}

/**
 * TCP ports that an older service has as well, where neither has an address: connections to the port go to the older. Services that only some
 * namespaces see are left aside, and so are all where proxies resolve names to addresses of ours.
 */
export function definePortConflicts(ctx: Context): (object: ConfigObject) => readonly Finding[] {
  const bare = ctx.engine.query<string, readonly (BarePort & { readonly port: number })[]>({
    name: "problems.barePorts",
    compute: (namespace) => barePorts(ctx, namespace),
  });
  const byPort = ctx.engine.query<"", ReadonlyMap<number, readonly BarePort[]>>({
    name: "problems.barePortsByNumber",
    compute: () => {
      const all = ctx.registry.namespaces().flatMap((namespace) => bare(namespace));
      const groups = [...Map.groupBy(all, ({ port }) => port)].filter(([, group]) => group.length > 1);
      return new Map(
        groups.map(([port, group]) => [port, group.toSorted((a, b) => a.createdAt - b.createdAt || compareText(a.host, b.host))]),
      );
    },
  });
  const holder = ctx.engine.query<number, BarePort | undefined>({
    name: "problems.portHolder",
    compute: (port) => byPort("").get(port)?.[0],
  });
  return (object) => {
    const key = objectKey(object);
    const own = new Set(bare(object.namespace).flatMap((one) => (one.objectKey === key ? [one.port] : [])));
    return (object.spec as ServiceEntry).ports.flatMap(({ number }, index): readonly Finding[] => {
      const first = own.has(number) ? holder(number) : undefined;
      if (first === undefined || first.objectKey === key) return [];
      const message = `connections to port ${number} go to ${first.host} (namespace ${first.namespace}), which has the port as well and is older; give this service addresses, or have proxies capture DNS`;
      return [finding("conflict.port", ["ports", index], message)];
    });
  };
}

function barePorts({ inputs, registry }: Context, namespace: string): readonly (BarePort & { readonly port: number })[] {
  const metadata = inputs.mesh.get("mesh")?.defaultConfig?.proxyMetadata ?? {};
  if (isOn(metadata.ISTIO_META_DNS_CAPTURE ?? "")) return [];
  return registry.servicesIn(namespace).flatMap((ref) => {
    const service = registry.service(ref);
    if (service === undefined || service.headless || service.addresses.length > 0 || !service.exportTo.includes("*")) return [];
    if (service.resolution === "alias" || service.resolution === "none") return [];
    return service.ports
      .filter(({ protocol }) => BARE.has(protocol) && !isTls(protocol))
      .map(({ number }) => ({ objectKey: service.objectKey, host: service.host, namespace, createdAt: service.createdAt, port: number }));
  });
}

/** Protocols that say no name: one service cannot be told from another by what is said. */
const BARE: ReadonlySet<string> = new Set(["TCP", "MONGO", "MYSQL", "REDIS"]);
