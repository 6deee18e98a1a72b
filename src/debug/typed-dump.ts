import type { Registry } from "@bufbuild/protobuf";
import type { Encoded } from "../wire/encoded.ts";
import { shortTypeName } from "../wire/type-urls.ts";
import type { ProxyDump } from "./proxy-dump.ts";
import { resourceJson } from "./resource-json.ts";

/** Resources as a list, each made when it is written. */
export interface TypedDump {
  readonly configs: Iterable<unknown>;
}

/** Resources of some types (`cds,eds`) as a proxy is offered them, of each what would be sent, its secrets aside. Of types it does not ask for, none. */
export function typedDump({ types }: ProxyDump, names: string, registry: Registry): TypedDump {
  const wanted = new Set(names.toLowerCase().split(","));
  const chosen = types.filter(({ typeUrl }) => wanted.has(shortTypeName(typeUrl)));
  return resourcesJson(
    chosen.flatMap(({ offered }) => [...offered.resources.values()]),
    registry,
  );
}

/** Resources as `configs` of a dump; each is read when it is written. */
export const resourcesJson = (resources: Iterable<Encoded>, registry: Registry): TypedDump => ({
  configs: { [Symbol.iterator]: () => eachJson(resources, registry) },
});

function* eachJson(resources: Iterable<Encoded>, registry: Registry): Generator<unknown> {
  for (const resource of resources) {
    const { json, hosts } = resourceJson(resource, registry);
    yield hosts === undefined ? json : { ...json, virtualHosts: hosts };
  }
}
