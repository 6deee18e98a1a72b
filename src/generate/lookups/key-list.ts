import { contentHash } from "../../base/hash.ts";
import { serviceKey } from "../../model/service.ts";
import type { ScopedService } from "../context.ts";

const ids = new WeakMap<readonly string[], string>();

/** A list of keys in short. Most namespaces see the same objects, and what is worked out from a list serves all who have an equal one. */
export function keyListId(keys: readonly string[]): string {
  const known = ids.get(keys) ?? contentHash(keys.join("\n"));
  ids.set(keys, known);
  return known;
}

const serviceListIds = new WeakMap<readonly ScopedService[], string>();

/** A list of services in short. Namespaces that see the same have the same list. */
export function serviceListId(services: readonly ScopedService[]): string {
  const known =
    serviceListIds.get(services) ??
    contentHash(services.map((service) => `${serviceKey(service)}|${service.ports?.join() ?? ""}`).join("\n"));
  serviceListIds.set(services, known);
  return known;
}
