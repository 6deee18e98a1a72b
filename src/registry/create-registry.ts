import type { Inputs } from "../config/inputs.ts";
import type { Engine } from "../engine/index.ts";
import { defineAddressQueries } from "./address-queries.ts";
import { defineCatalog } from "./catalog-queries.ts";
import { defineMembers } from "./member-queries.ts";
import type { Registry } from "./registry.ts";
import { defineMeshQueries, REGISTRY_DEFAULTS, type RegistryContext, type RegistrySettings } from "./registry-context.ts";

/** Defines the registry on an engine: once per engine, since queries have names. Nothing is computed before it is asked for. */
export function createRegistry(engine: Engine, inputs: Inputs, settings: Partial<RegistrySettings> = {}): Registry {
  const complete = { ...REGISTRY_DEFAULTS, ...settings };
  const context: RegistryContext = { engine, inputs, settings: complete, mesh: defineMeshQueries(engine, inputs, complete) };
  const catalog = defineCatalog(context);
  const members = defineMembers(context, catalog);
  const addresses = defineAddressQueries(context, catalog, members);
  return {
    namespaces: () => catalog.namespaces(""),
    servicesIn: catalog.servicesIn,
    service: catalog.service,
    servicesByHost: catalog.servicesByHost,
    endpoints: (ref, port) => members.endpoints({ ref, port }),
    serviceAccounts: (ref, port) => members.serviceAccounts({ ref, port }),
    instancesAt: (address, namespace, { cluster = "", pod = "", claim = "" } = {}) =>
      addresses.instancesAt({ address, namespace, cluster, pod, claim }),
    workloadAt: (address, namespace, { cluster = "", pod = "" } = {}) =>
      addresses.workloadAt({ address, namespace, cluster, pod, claim: "" }),
    isRemote: addresses.isRemote,
  };
}
