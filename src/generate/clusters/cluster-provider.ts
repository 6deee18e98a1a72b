import { fromBinary } from "@bufbuild/protobuf";
import { contentHash } from "../../base/hash.ts";
import type { Query } from "../../engine/index.ts";
import { buildCluster, type ClusterInput } from "../../envoy/cluster/index.ts";
import { ClusterSchema } from "../../gen/envoy/config/cluster/v3/cluster_pb.js";
import type { ProxyView } from "../../model/proxy.ts";
import { hostKey, type ServiceRef } from "../../model/service.ts";
import { encoded, sameEncoded } from "../../wire/encode.ts";
import type { Encoded, ResourceSet } from "../../wire/encoded.ts";
import { CLUSTER_TYPE, ENDPOINT_TYPE, LISTENER_TYPE, ROUTE_TYPE, VIRTUAL_HOST_TYPE } from "../../wire/type-urls.ts";
import type { ResourceProvider } from "../../xds/provider.ts";
import type { GenerateContext } from "../context.ts";
import { NOWHERE, needsOf, type Place, type PlaceNeeds, placeOf } from "../endpoints/assignment-key.ts";
import type { ServiceTraits } from "../endpoints/assignment-plan.ts";
import { assignmentsOf } from "../endpoints/assignments.ts";
import { ahead, definePrepareFirst } from "../prepare-first.ts";
import { definePrepareOnce } from "../prepare-once.ts";
import { narrowedProxyConfig, proxyConfigOf } from "../proxy-config.ts";
import { createCollector, layered, policiesBehind, sameResourceSet } from "../resource-set.ts";
import { clientClassId, clientClassOf } from "./client-class.ts";
import { defineEastWest } from "./east-west.ts";
import { fixedClusters } from "./fixed-clusters.ts";
import { type InboundKey, inboundClusters } from "./inbound-clusters.ts";
import { meshOf, outboundClusters } from "./outbound-clusters.ts";
import {
  type ClientTraits,
  clientPart,
  familyOf,
  hasBothFamilies,
  type OutboundKey,
  type OutboundKeys,
  outboundKey,
  outboundKeys,
} from "./outbound-key.ts";
import { type Outlook, outlooksOf, ruleOf } from "./outlook.ts";

/** The services of an outlook and the rules for them, and what must be known of where a client runs. */
interface OutboundPlan {
  readonly services: readonly (Pick<OutboundKey, "service" | "ports" | "rule"> & { readonly inline: boolean })[];
  readonly needs: PlaceNeeds;
}

interface OutboundSetKey {
  readonly outlook: Outlook;
  readonly traits: ClientTraits;
  readonly place: Place;
}

interface SetKey {
  readonly outbound: OutboundKeys;
  readonly traits: ClientTraits;
  readonly inbound: readonly ClusterInput[];
}

const outboundSetId = ({ outlook, traits, place }: OutboundSetKey): string => JSON.stringify([outlook.id, Object.values(traits), place]);

/**
 * Clusters of sidecars and gateways. A cluster is built and encoded once per content, whoever asks: what a client sees only decides which
 * inputs are put together, and pods of one Deployment end in one set, because their inbound clusters are compared by content.
 */
export function createClusterProvider(ctx: GenerateContext): ResourceProvider {
  const queries = defineClusterQueries(ctx);
  const eastWest = defineEastWest(ctx);
  const preservesCase = definePreservesCase(ctx);
  const prepareOnce = definePrepareOnce(ctx.engine);
  const prepareFirst = definePrepareFirst();
  const outlooks = outlooksOf(ctx);
  const outboundOf = (view: ProxyView): OutboundSetKey => {
    const outlook = outlooks.of(clientClassOf(ctx, view));
    const router = view.type !== "sidecar";
    const traits: ClientTraits = {
      router,
      identity: view.hasIdentity,
      files: view.metadata.clientFiles,
      credentialSocket: view.metadata.credentialSocket,
      family: familyOf(view, ctx.settings.dualStack),
      bothFamilies: hasBothFamilies(view),
      preserveHeaderCase: preservesCase(view),
      sni: router && eastWest(view.labels),
    };
    return { outlook, traits, place: placeOf(view, queries.plan(outlook).needs) };
  };
  const inboundOf = (view: ProxyView, { family, preserveHeaderCase }: ClientTraits): InboundKey => ({
    client: clientClassOf(ctx, view),
    addresses: view.type === "sidecar" ? view.addresses : [],
    remoteCluster: view.remoteCluster,
    pod: view.pod,
    claim: view.claim,
    family,
    preserveHeaderCase,
    captured: view.interception !== "NONE",
  });
  const setOf = (view: ProxyView): SetKey => {
    const outbound = outboundOf(view);
    const { traits } = outbound;
    return { outbound: queries.keys(outbound), traits, inbound: queries.inbound(inboundOf(view, traits)) };
  };
  return {
    typeUrl: CLUSTER_TYPE,
    removeAfter: [LISTENER_TYPE, ROUTE_TYPE, VIRTUAL_HOST_TYPE],
    companion: { typeUrl: ENDPOINT_TYPE, namesOf: (resource) => (isEdsCluster(resource) ? [resource.name] : []) },
    *prepare(view) {
      yield* ctx.lookups.scopeSteps();
      const outlook = outlooks.of(clientClassOf(ctx, view));
      yield;
      yield* prepareFirst({ id: outlook.id, steps: () => planSteps(ctx, outlook), make: () => queries.plan(outlook) });
      const shared = queries.keys(outboundOf(view));
      yield;
      yield* prepareOnce(shared, () => clusterSteps(queries, shared));
    },
    isLastResult: () => true,
    offered: (view) => queries.set(setOf(view)),
    provenance(view, name) {
      const set = setOf(view);
      return provenanceOf({ ctx, queries, name }, set, inboundOf(view, set.traits));
    },
  };
}

/** The work behind the clusters of a set, a key each. */
function* clusterSteps(queries: ClusterQueries, shared: OutboundKeys): Iterable<void> {
  for (const key of shared.keys) {
    const inputs = queries.outbound.try(key);
    for (const input of inputs.ok ? inputs.value : []) queries.cluster.try(input);
    yield;
  }
}

/** The work behind a plan, a namespace or a rule each. */
function* planSteps(ctx: GenerateContext, { services }: Outlook): Iterable<void> {
  const { traitsIn } = assignmentsOf(ctx);
  for (const namespace of ctx.registry.namespaces()) {
    traitsIn.try(namespace);
    yield;
  }
  for (const seen of services) {
    if (seen.rules.length === 0) continue;
    ahead(() => ruleOf(ctx, seen));
    yield;
  }
}

/** Whether a proxy's configuration wants headers of HTTP/1 spelt as they came. */
function definePreservesCase({ engine, inputs }: GenerateContext): (view: ProxyView) => boolean {
  const preserves = engine.query<string, boolean>({
    name: "clusters.preservesCase",
    compute: (json) => proxyConfigOf(inputs.mesh.get("mesh"), json)?.proxyHeaders?.preserveHttp1HeaderCase === true,
  });
  return (view) => preserves(narrowedProxyConfig(view.metadata.proxyConfig, ["proxyHeaders"]));
}

/** Whether a cluster asks for its endpoints. Known of those made here; one that came from elsewhere (kept from before, patched) is looked into. */
const asksForEndpoints = new WeakMap<Encoded, boolean>();

function isEdsCluster(resource: Encoded): boolean {
  const known = asksForEndpoints.get(resource) ?? fromBinary(ClusterSchema, resource.body).edsClusterConfig !== undefined;
  asksForEndpoints.set(resource, known);
  return known;
}

type ClusterQueries = ReturnType<typeof defineClusterQueries>;

function defineClusterQueries(ctx: GenerateContext) {
  const { engine } = ctx;
  const plan = engine.query<Outlook, OutboundPlan>({
    name: "clusters.plan",
    id: ({ id }) => id,
    compute: (outlook) => outboundPlan(ctx, outlook),
  });
  const keys = engine.query<OutboundSetKey, OutboundKeys>({
    name: "clusters.keys",
    id: outboundSetId,
    compute: ({ outlook, traits, place }) => {
      const part = clientPart(traits);
      return outboundKeys(
        plan(outlook).services.map(({ service, ports, rule, inline }) =>
          outboundKey({ service, ports, rule, place: inline ? place : NOWHERE }, part),
        ),
      );
    },
    same: (a, b) => a.id === b.id,
  });
  const outbound = engine.query({
    name: "clusters.outbound",
    id: ({ id }: OutboundKey) => id,
    compute: (key) => outboundClusters(ctx, key),
  });
  const inbound = engine.query<InboundKey, readonly ClusterInput[]>({
    name: "clusters.inbound",
    id: ({ client, ...rest }) => JSON.stringify([clientClassId(client), ...Object.values(rest)]),
    compute: (key) => (key.addresses.length === 0 ? [] : inboundClusters(ctx, key)),
  });
  const cluster = engine.query<ClusterInput, Encoded>({
    name: "clusters.cluster",
    id: inputId,
    compute: encodedCluster,
    same: sameEncoded,
  });
  const outboundSet = engine.query<OutboundKeys, ResourceSet>({
    name: "clusters.outboundSet",
    id: ({ id }) => id,
    compute: ({ keys: all }) => collectOutbound(all, outbound, cluster),
    same: sameResourceSet,
  });
  const set = engine.query<SetKey, ResourceSet>({
    name: "clusters.set",
    id: (key) => `${key.outbound.id}|${clientPart(key.traits).id}|${key.inbound.map(inputId).join()}`,
    compute: (key) => {
      const own = createCollector();
      for (const input of [...fixedClusters(meshOf(ctx), key.traits), ...key.inbound]) own.take(input.name, cluster.try(input));
      return layered(outboundSet(key.outbound), own.set);
    },
    same: sameResourceSet,
  });
  return { plan, keys, outbound, inbound, cluster, set };
}

function outboundPlan(ctx: GenerateContext, outlook: Outlook): OutboundPlan {
  const { traitsIn, networked, plan } = assignmentsOf(ctx);
  const traitsOf = (ref: ServiceRef): ServiceTraits | undefined => traitsIn(ref.namespace).get(hostKey(ref));
  const services = outlook.services.map((seen) => ({
    service: seen.service,
    ports: seen.service.ports,
    rule: ruleOf(ctx, seen),
    inline: traitsOf(seen.service)?.inline === true,
  }));
  const inline = services.flatMap(({ service, rule, inline }) => {
    const traits = inline ? traitsOf(service) : undefined;
    if (traits === undefined) return [];
    const subsets = ["", ...(rule?.spec.subsets ?? []).map(({ name }) => name)];
    return traits.ports.flatMap((port) =>
      subsets.flatMap(
        (subset) => plan({ name: "", cluster: { port, subset, host: service.host }, sni: false, service, rule, traits }) ?? [],
      ),
    );
  });
  return { services, needs: needsOf(inline, inline.length > 0 && networked("")) };
}

function collectOutbound(keys: readonly OutboundKey[], outbound: OutboundQuery, cluster: Query<ClusterInput, Encoded>): ResourceSet {
  const collector = createCollector();
  for (const key of keys) {
    const inputs = outbound.try(key);
    if (!inputs.ok) collector.fail(`outbound|*||${key.service.host}`, inputs.error.message);
    for (const input of inputs.ok ? inputs.value : []) collector.take(input.name, cluster.try(input));
  }
  return collector.set;
}

type OutboundQuery = Query<OutboundKey, ReturnType<typeof outboundClusters>>;

function encodedCluster(input: ClusterInput): Encoded {
  const resource = encoded({ typeUrl: CLUSTER_TYPE, name: input.name }, ClusterSchema, buildCluster(input));
  asksForEndpoints.set(resource, input.discovery === "eds");
  return resource;
}

const inputIds = new WeakMap<ClusterInput, string>();

/** Content of an input in short. Inputs are made by one function each, so equal content is written in equal order. */
function inputId(input: ClusterInput): string {
  const known = inputIds.get(input) ?? contentHash(JSON.stringify(input));
  inputIds.set(input, known);
  return known;
}

interface ProvenanceParts {
  readonly ctx: GenerateContext;
  readonly queries: ClusterQueries;
  readonly name: string;
}

function provenanceOf({ ctx, queries, name }: ProvenanceParts, key: SetKey, inbound: InboundKey): readonly string[] {
  const objects = (refs: readonly ServiceRef[]): readonly string[] => refs.flatMap((ref) => ctx.registry.service(ref)?.objectKey ?? []);
  const own = key.inbound.find((input) => input.name === name);
  if (own !== undefined) return [...new Set([...objects(own.metadata?.services ?? []), ...policiesBehind(ctx, queries.inbound, inbound)])];
  for (const one of key.outbound.keys) {
    const inputs = queries.outbound.try(one);
    if (!inputs.ok || !inputs.value.some((input) => input.name === name)) continue;
    return [...new Set([...objects([one.service]), ...(one.rule?.keys ?? []), ...policiesBehind(ctx, queries.outbound, one)])];
  }
  return [];
}
