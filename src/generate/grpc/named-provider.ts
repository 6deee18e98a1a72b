import type { Query } from "../../engine/index.ts";
import type { ProxyView } from "../../model/proxy.ts";
import { sameEncoded } from "../../wire/encode.ts";
import type { Encoded, ResourceSet } from "../../wire/encoded.ts";
import type { NameSet, ResourceProvider, Wanted } from "../../xds/provider.ts";
import type { GenerateContext } from "../context.ts";
import { createCollector, sameResourceSet } from "../resource-set.ts";

/** A resource, or why it cannot be made as configured and must not be made otherwise; undefined where there is no such thing. */
export type Found = { readonly resource: Encoded; readonly objects: readonly string[] } | { readonly refused: string } | undefined;

/** How resources of one type are found by name. `O` is what of a client decides them: clients that agree on it share them. */
export interface NamedResources<O> {
  readonly typeUrl: string;
  /** `names` are those it asks for. */
  readonly ownerOf: (view: ProxyView, names: Iterable<string>) => O;
  readonly ownerId: (owner: O) => string;
  /** Called inside a query: reads are recorded. */
  readonly find: (owner: O, name: string) => Found;
  /** What a client is given that asks for everything; absent = nothing, since gRPC asks by name. */
  readonly all?: (owner: O) => readonly string[];
}

interface OneKey<O> {
  readonly owner: O;
  readonly name: string;
}

/** A provider for clients that ask for each resource by its name and hold few of them. */
export function createNamedProvider<O>(ctx: GenerateContext, spec: NamedResources<O>): ResourceProvider {
  const { typeUrl, ownerOf, ownerId } = spec;
  const one: Query<OneKey<O>, Found> = ctx.engine.query<OneKey<O>, Found>({
    name: `grpc.${typeUrl.slice(typeUrl.lastIndexOf(".") + 1)}`,
    id: ({ owner, name }) => `${name}|${ownerId(owner)}`,
    compute: ({ owner, name }) => spec.find(owner, name),
    same: sameFound,
  });
  const set = ctx.engine.query<{ readonly owner: O; readonly wildcard: boolean; readonly names: NameSet }, ResourceSet>({
    name: `${one.queryName}.set`,
    id: ({ owner, wildcard, names }) => `${wildcard ? "*" : ""}${names.id}|${ownerId(owner)}`,
    compute: ({ owner, wildcard, names }) => {
      const collector = createCollector();
      for (const name of new Set([...names.names, ...(wildcard ? (spec.all?.(owner) ?? []) : [])])) {
        const found = one.try({ owner, name });
        if (!found.ok) collector.fail(name, found.error.message);
        else if (found.value === undefined) continue;
        else if ("refused" in found.value) collector.fail(name, found.value.refused);
        else collector.add(found.value.resource);
      }
      return collector.set;
    },
    same: sameResourceSet,
  });
  return {
    typeUrl,
    *prepare(view: ProxyView, { names }: Wanted) {
      const owner = ownerOf(view, names.names);
      for (const name of names.names) {
        one.try({ owner, name });
        yield;
      }
    },
    offered: (view, { wildcard, names }) => set({ owner: ownerOf(view, names.names), wildcard: wildcard && spec.all !== undefined, names }),
    provenance(view, name) {
      const found = one({ owner: ownerOf(view, [name]), name });
      return found === undefined || "refused" in found ? [] : found.objects;
    },
  };
}

function sameFound(a: Found, b: Found): boolean {
  if (a === undefined || b === undefined || "refused" in a || "refused" in b) return JSON.stringify(a) === JSON.stringify(b);
  return sameEncoded(a.resource, b.resource) && a.objects.join() === b.objects.join();
}
