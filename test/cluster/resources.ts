import type { ApiConnection } from "./api-connection.ts";

/** A kind as the API server serves it. */
export interface Resource {
  readonly group: string;
  readonly version: string;
  readonly kind: string;
  readonly plural: string;
  readonly namespaced: boolean;
}

/** Finds resources by name, asking the API server again when one is not known yet. */
export interface Resources {
  /** By `Pod`, `pods`, `deployments.apps` or `Gateway.networking.istio.io`. */
  named(name: string): Promise<Resource>;
  /** By what an object says of itself. */
  of(apiVersion: string, kind: string): Promise<Resource>;
}

interface Discovered {
  readonly items: readonly {
    readonly metadata?: { readonly name?: string };
    readonly versions: readonly {
      readonly version: string;
      readonly resources?: readonly {
        readonly resource: string;
        readonly scope: "Namespaced" | "Cluster";
        readonly responseKind: { readonly kind: string };
      }[];
    }[];
  }[];
}

/** Asks when a kind is first named, and again for one that is not known yet. */
export function discoverResources(api: ApiConnection): Resources {
  let known: readonly Resource[] = [];
  const find = async (what: string, matches: (resource: Resource) => boolean): Promise<readonly Resource[]> => {
    if (!known.some(matches)) known = await discover(api);
    const found = known.filter(matches);
    if (found.length === 0) throw new Error(`the API server has no ${what}`);
    return found;
  };
  return {
    async named(name) {
      const [first = "", ...rest] = name.split(".");
      const group = rest.join(".");
      const found = await find(name, (one) => (one.kind === first || one.plural === first) && (group === "" || one.group === group));
      const [best] = found;
      const others = new Set(found.map((one) => one.group));
      if (best === undefined || (others.size > 1 && best.group !== ""))
        throw new Error(`${name} is in ${[...others].join(" and ")}; name the group`);
      return best;
    },
    async of(apiVersion, kind) {
      const [version = "", group = ""] = apiVersion.split("/").reverse();
      const [best] = await find(`${kind} of ${apiVersion}`, (one) => one.kind === kind && one.version === version && one.group === group);
      return best as Resource;
    },
  };
}

const ACCEPT = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";

/** Preferred versions come first, and the core group before the others, as kubectl looks kinds up. */
async function discover(api: ApiConnection): Promise<readonly Resource[]> {
  const answers = await Promise.all(["/api", "/apis"].map((path) => api.call({ method: "GET", path, accept: ACCEPT })));
  return answers.flatMap(({ body }) =>
    (body as Discovered).items.flatMap(({ metadata, versions }) =>
      versions.flatMap(({ version, resources = [] }) =>
        resources.map(({ resource, scope, responseKind }) => ({
          group: metadata?.name ?? "",
          version,
          kind: responseKind.kind,
          plural: resource,
          namespaced: scope === "Namespaced",
        })),
      ),
    ),
  );
}

/** Where a resource is on the API server: of one namespace, or of all. */
export function pathOf({ group, version, plural, namespaced }: Resource, namespace?: string): string {
  const base = group === "" ? `/api/${version}` : `/apis/${group}/${version}`;
  return namespaced && namespace !== undefined ? `${base}/namespaces/${namespace}/${plural}` : `${base}/${plural}`;
}
