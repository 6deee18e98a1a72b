import type { Query } from "../../engine/index.ts";
import { type Service, type ServiceRef, serviceKey } from "../../model/service.ts";
import type { GenerateContext, ScopedService } from "../context.ts";
import { isExported } from "./export-to.ts";
import { compareText } from "./precedence.ts";

type Context = Pick<GenerateContext, "engine" | "registry">;

export interface VisibleServices {
  /** Services a namespace may see, one per host, sorted by host. */
  readonly visibleTo: Query<string, readonly ScopedService[]>;
  /** The service a host means in a namespace. */
  readonly visibleService: (query: { readonly host: string; readonly namespace: string }) => ServiceRef | undefined;
}

interface Bucket {
  readonly everyone: readonly ServiceRef[];
  readonly restricted: readonly { readonly ref: ServiceRef; readonly exportTo: readonly string[] }[];
}

/**
 * Visibility by `exportTo`, put together from one bucket per declaring namespace: a service that changes without changing its export
 * re-runs its bucket to an equal value and nothing above it.
 */
export function defineVisibleServices(ctx: Context): VisibleServices {
  const bucket = ctx.engine.query<string, Bucket>({ name: "exportedServices", compute: (namespace) => bucketOf(ctx, namespace) });
  const everyone = ctx.engine.query<"all", readonly ScopedService[]>({
    name: "publicServices",
    compute: () =>
      onePerHost(
        ctx.registry.namespaces().flatMap((namespace) => bucket(namespace).everyone),
        ctx,
      ),
  });
  const visibleTo = ctx.engine.query<string, readonly ScopedService[]>({
    name: "visibleServices",
    compute: (viewer) => {
      const restricted = ctx.registry.namespaces().flatMap((owner) =>
        bucket(owner)
          .restricted.filter(({ exportTo }) => isExported(exportTo, [], { owner, viewer }))
          .map(({ ref }) => ref),
      );
      return restricted.length === 0 ? everyone("all") : onePerHost([...everyone("all"), ...restricted], ctx);
    },
  });
  const exportOf = ctx.engine.query<ServiceRef, readonly string[] | undefined>({
    name: "serviceExport",
    id: serviceKey,
    compute: (ref) => ctx.registry.service(ref)?.exportTo,
  });
  const visibleService: VisibleServices["visibleService"] = ({ host, namespace: viewer }) =>
    ctx.registry.servicesByHost(host).find((ref) => {
      const exportTo = exportOf(ref);
      return exportTo !== undefined && isExported(exportTo, [], { owner: ref.namespace, viewer });
    });
  return { visibleTo, visibleService };
}

function bucketOf(ctx: Context, namespace: string): Bucket {
  const services = ctx.registry
    .servicesIn(namespace)
    .map((ref) => ctx.registry.service(ref))
    .filter((service): service is Service => service !== undefined);
  const ref = ({ namespace, host }: Service): ServiceRef => ({ namespace, host });
  return {
    everyone: services.filter(({ exportTo }) => exportTo.length === 0 || exportTo.includes("*")).map(ref),
    restricted: services
      .filter(({ exportTo }) => exportTo.length > 0 && !exportTo.includes("*"))
      .map((service) => ({ ref: ref(service), exportTo: service.exportTo })),
  };
}

/** Where several namespaces declare a host, the registry's order of precedence decides: Kubernetes first, then the oldest. */
function onePerHost(refs: readonly ServiceRef[], ctx: Context): readonly ScopedService[] {
  const byHost = Map.groupBy(refs, (ref) => ref.host);
  const chosen = [...byHost].map(([host, rivals]) => {
    const [first] = rivals;
    if (rivals.length === 1 || first === undefined) return first;
    return ctx.registry.servicesByHost(host).find((ref) => rivals.some((rival) => rival.namespace === ref.namespace)) ?? first;
  });
  return chosen
    .flatMap((ref) => (ref === undefined ? [] : [{ namespace: ref.namespace, host: ref.host, ports: undefined }]))
    .sort((a, b) => compareText(a.host, b.host));
}
