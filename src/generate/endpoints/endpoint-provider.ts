import { parseOutboundClusterName, SELF_DISCOVERY_CLUSTER } from "../../envoy/cluster/index.ts";
import { assignmentBytes } from "../../envoy/endpoint/assignment-bytes.ts";
import type { ProxyView } from "../../model/proxy.ts";
import { hostKey } from "../../model/service.ts";
import { encodedBytes, sameEncoded } from "../../wire/encode.ts";
import type { Encoded, ResourceSet } from "../../wire/encoded.ts";
import { ENDPOINT_TYPE } from "../../wire/type-urls.ts";
import type { NameSet, ResourceProvider, Wanted } from "../../xds/provider.ts";
import { clientClassOf } from "../clusters/client-class.ts";
import { type Outlook, outlooksOf, ruleOf, type SeenService } from "../clusters/outlook.ts";
import type { GenerateContext } from "../context.ts";
import { definePrepareOnce } from "../prepare-once.ts";
import { remembered } from "../remembered.ts";
import { createCollector, policiesBehind, sameResourceSet } from "../resource-set.ts";
import {
  type AssignmentKey,
  type AssignmentKeys,
  type AssignmentPlan,
  assignmentKey,
  assignmentKeys,
  needsOf,
  type Place,
  type PlaceNeeds,
  placeOf,
  sharedPlan,
} from "./assignment-key.ts";
import type { ServiceTraits } from "./assignment-plan.ts";
import { type Assignments, assignmentsOf } from "./assignments.ts";
import { asksForOwnService, defineOwnService } from "./own-service.ts";

interface PlansKey {
  readonly outlook: Outlook;
  readonly names: NameSet;
  /** What `local_cluster` stands for, where it is among the names. */
  readonly own: string;
}

interface Plans {
  readonly plans: readonly AssignmentPlan[];
  readonly needs: PlaceNeeds;
}

interface PlacedKey extends PlansKey {
  readonly place: Place;
}

/** Whose clusters are planned, and how. */
interface Planning extends Pick<Assignments, "plan">, Pick<PlansKey, "own"> {
  readonly known: ReadonlyMap<string, SeenService>;
  readonly traitsIn: (namespace: string) => ReadonlyMap<string, ServiceTraits>;
}

const plansId = ({ outlook, names, own }: PlansKey): string => `${names.id}|${outlook.id}${own === "" ? "" : `|${own}`}`;
const placedId = (key: PlacedKey): string => `${plansId(key)}|${JSON.stringify(key.place)}`;

/**
 * Load assignments by cluster name. Work is split so that each kind of change costs what it must: a changed rule plans an outlook again, a
 * changed endpoint re-runs the assignments of its service and the sets that hold them, which then only look their members up.
 */
export function createEndpointProvider(ctx: GenerateContext): ResourceProvider {
  const { planOne, plans, keys, assignment, set } = defineEndpointQueries(ctx);
  const prepareOnce = definePrepareOnce(ctx.engine);
  const outlooks = outlooksOf(ctx);
  const ownService = defineOwnService(ctx);
  const placed = (view: ProxyView, wanted: Wanted): PlacedKey => {
    const own = asksForOwnService(wanted.names) ? ownService(view) : "";
    const key: PlansKey = { outlook: outlooks.of(clientClassOf(ctx, view)), names: wanted.names, own };
    return { ...key, place: placeOf(view, plans(key).needs) };
  };
  return {
    typeUrl: ENDPOINT_TYPE,
    urgent: true,
    isLastResult: () => true,
    prepare(view, wanted) {
      const shared = keys(placed(view, wanted));
      return prepareOnce(shared, function* () {
        for (const key of shared.keys) {
          assignment.try(key);
          yield;
        }
      });
    },
    offered: (view, wanted) => set(keys(placed(view, wanted))),
    provenance(view, name) {
      const own = name === SELF_DISCOVERY_CLUSTER ? ownService(view) : "";
      const planned = planOne(name, { own, known: outlooks.byHost(outlooks.of(clientClassOf(ctx, view))), ...assignmentsOf(ctx) });
      if (planned?.plan === undefined) return [];
      const place = placeOf(view, needsOf([planned.plan], assignmentsOf(ctx).networked("")));
      const key = assignmentKey(planned.plan, place);
      return [...new Set([...servedBy(ctx, planned.plan), ...(planned.rule?.keys ?? []), ...policiesBehind(ctx, assignment, key)])];
    },
  };
}

function defineEndpointQueries(ctx: GenerateContext) {
  const { engine } = ctx;
  const assignments = assignmentsOf(ctx);
  const planOne = (name: string, { own, known, plan, traitsIn }: Planning) => {
    const isOwn = name === SELF_DISCOVERY_CLUSTER;
    const cluster = parseOutboundClusterName(isOwn ? own : name);
    const seen = cluster === undefined ? undefined : known.get(cluster.host);
    if (cluster === undefined || seen === undefined) return undefined;
    const { service } = seen;
    // How others are to call it does not count among its own.
    const rule = isOwn ? undefined : ruleOf(ctx, seen);
    const traits = traitsIn(service.namespace).get(hostKey(service));
    return { rule, plan: traits && plan({ name, cluster, sni: cluster.sni, service, rule, traits }) };
  };
  const plans = engine.query<PlansKey, Plans>({
    name: "endpoints.plans",
    id: plansId,
    compute: ({ outlook, names, own }) => {
      const planning = {
        own,
        known: outlooksOf(ctx).byHost(outlook),
        plan: assignments.planner(),
        traitsIn: remembered(assignments.traitsIn),
      };
      const planned = [...names.names].flatMap((name) => {
        const plan = planOne(name, planning)?.plan;
        return plan === undefined ? [] : [sharedPlan(plan)];
      });
      return { plans: planned, needs: needsOf(planned, assignments.networked("")) };
    },
  });
  const keys = engine.query<PlacedKey, AssignmentKeys>({
    name: "endpoints.keys",
    id: placedId,
    compute: (key) => assignmentKeys(plans(key).plans.map((plan) => assignmentKey(plan, key.place))),
    same: (a, b) => a.id === b.id,
  });
  const assignment = engine.query<AssignmentKey, Encoded>({
    name: "endpoints.assignment",
    id: ({ id }) => id,
    compute: (key) => encodedBytes(ENDPOINT_TYPE, key.plan.cluster, assignmentBytes(assignments.select(key, { resolved: true }))),
    same: sameEncoded,
  });
  const set = engine.query<AssignmentKeys, ResourceSet>({
    name: "endpoints.set",
    id: ({ id }) => id,
    compute: ({ keys }) => {
      const collector = createCollector();
      for (const one of keys) collector.take(one.plan.cluster, assignment.try(one));
      return collector.set;
    },
    same: sameResourceSet,
  });
  return { planOne, plans, keys, assignment, set };
}

/** Keys of the objects that a service and its endpoints were made from. */
function servedBy({ registry }: GenerateContext, { service, port }: AssignmentPlan): readonly string[] {
  const own = registry.service(service)?.objectKey;
  return [...(own === undefined ? [] : [own]), ...registry.endpoints(service, port).map(({ objectKey }) => objectKey)];
}
