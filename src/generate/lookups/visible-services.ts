import type { Query } from "../../engine/index.ts";
import { refOf, type Service, type ServiceRef, serviceKey } from "../../model/service.ts";
import type { GenerateContext, ScopedService } from "../context.ts";
import { ahead } from "../prepare-first.ts";
import { exportRank, isExported } from "./export-to.ts";
import { compareText } from "./precedence.ts";

type Context = Pick<GenerateContext, "engine" | "registry">;

export interface VisibleServices {
  /** The work behind the others in small steps. */
  readonly steps: () => Iterable<void>;
  /** What everybody may see. */
  readonly everyone: () => readonly ScopedService[];
  /** Services a namespace may see, one per host, sorted by host. */
  readonly visibleTo: Query<string, readonly ScopedService[]>;
  /** What declares a host and is visible in a namespace, in order of precedence: its own, Kubernetes, what is meant for it, the rest by age. */
  readonly declarations: (query: { readonly host: string; readonly namespace: string }) => readonly ServiceRef[];
  /** Hosts of a namespace that it exports to others and not to itself; nearly always there are none. */
  readonly hiddenFromOwn: (namespace: string) => readonly string[];
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
  const publicRefs = (): readonly ServiceRef[] => ctx.registry.namespaces().flatMap((namespace) => bucket(namespace).everyone);
  const everyone = ctx.engine.query<"all", readonly ScopedService[]>({
    name: "publicServices",
    compute: () =>
      onePerHost(publicRefs(), (host, rivals) =>
        ctx.registry.servicesByHost(host).find((ref) => rivals.some((rival) => serviceKey(rival) === serviceKey(ref))),
      ),
  });
  /** Public services of hosts that several namespaces declare. Each of these namespaces means its own; nearly always there are none. */
  const contested = ctx.engine.query<"all", readonly ServiceRef[]>({
    name: "contestedServices",
    compute: () => [...Map.groupBy(publicRefs(), ({ host }) => host).values()].filter((rivals) => rivals.length > 1).flat(),
  });
  const standing = ctx.engine.query<ServiceRef, Standing | undefined>({
    name: "serviceStanding",
    id: serviceKey,
    compute: (ref) => {
      const service = ctx.registry.service(ref);
      return service === undefined ? undefined : { exportTo: service.exportTo, isKubernetes: service.source === "Kubernetes" };
    },
  });
  const declarations: VisibleServices["declarations"] = ({ host, namespace: viewer }) =>
    ctx.registry
      .servicesByHost(host)
      .flatMap((ref) => {
        const { exportTo, isKubernetes } = standing(ref) ?? HIDDEN;
        const namespaces = { owner: ref.namespace, viewer };
        if (!isExported(exportTo, [], namespaces)) return [];
        const width = exportRank(exportTo, [], namespaces);
        return [{ ref, rank: ref.namespace === viewer ? -2 : isKubernetes ? -1 : width, width }];
      })
      .sort((a, b) => a.rank - b.rank || a.width - b.width)
      .map(({ ref }) => ref);
  const visibleService: VisibleServices["visibleService"] = (query) => declarations(query)[0];
  const visibleTo = ctx.engine.query<string, readonly ScopedService[]>({
    name: "visibleServices",
    compute: (viewer) => {
      const restricted = ctx.registry.namespaces().flatMap((owner) =>
        bucket(owner)
          .restricted.filter(({ exportTo }) => isExported(exportTo, [], { owner, viewer }))
          .map(({ ref }) => ref),
      );
      const special = [...restricted, ...contested("all").filter(({ namespace }) => namespace === viewer)];
      if (special.length === 0) return everyone("all");
      return onePerHost([...everyone("all"), ...special], (host) => visibleService({ host, namespace: viewer }));
    },
  });
  const hiddenFromOwn = (namespace: string): readonly string[] =>
    bucket(namespace)
      .restricted.filter(({ exportTo }) => !isExported(exportTo, [], { owner: namespace, viewer: namespace }))
      .map(({ ref }) => ref.host);
  const steps = (): Iterable<void> => serviceSteps(ctx, (namespace) => void bucket.try(namespace));
  return { steps, everyone: () => everyone("all"), visibleTo, declarations, hiddenFromOwn, visibleService };
}

function* serviceSteps({ registry }: Context, gather: (namespace: string) => void): Iterable<void> {
  for (const namespace of registry.namespaces()) {
    for (const ref of registry.servicesIn(namespace)) {
      ahead(() => registry.service(ref));
      yield;
    }
    gather(namespace);
    yield;
  }
}

/** What of a service decides between several that declare one host. */
interface Standing {
  readonly exportTo: readonly string[];
  readonly isKubernetes: boolean;
}

const HIDDEN: Standing = { exportTo: ["~"], isKubernetes: false };

function bucketOf(ctx: Context, namespace: string): Bucket {
  const services = ctx.registry
    .servicesIn(namespace)
    .map((ref) => ctx.registry.service(ref))
    .filter((service): service is Service => service !== undefined);
  return {
    everyone: services.filter(({ exportTo }) => exportTo.length === 0 || exportTo.includes("*")).map(refOf),
    restricted: services
      .filter(({ exportTo }) => exportTo.length > 0 && !exportTo.includes("*"))
      .map((service) => ({ ref: refOf(service), exportTo: service.exportTo })),
  };
}

/** `choose` decides where several namespaces declare a host. */
function onePerHost(
  refs: readonly ServiceRef[],
  choose: (host: string, rivals: readonly ServiceRef[]) => ServiceRef | undefined,
): readonly ScopedService[] {
  const byHost = Map.groupBy(refs, (ref) => ref.host);
  return [...byHost]
    .flatMap(([host, rivals]) => (rivals.length === 1 ? undefined : choose(host, rivals)) ?? rivals[0] ?? [])
    .map((ref) => ({ ...refOf(ref), ports: undefined }))
    .sort((a, b) => compareText(a.host, b.host));
}
