import { contentHash } from "../../base/hash.ts";
import type { Query } from "../../engine/index.ts";
import { buildCluster, type ClusterInput } from "../../envoy/cluster/index.ts";
import { ClusterSchema } from "../../gen/envoy/config/cluster/v3/cluster_pb.js";
import type { ProxyView } from "../../model/proxy.ts";
import { encoded, sameEncoded } from "../../wire/encode.ts";
import type { Encoded, ResourceSet } from "../../wire/encoded.ts";
import { CLUSTER_TYPE, ENDPOINT_TYPE } from "../../wire/type-urls.ts";
import type { ResourceProvider } from "../../xds/provider.ts";
import type { GenerateContext } from "../context.ts";
import { needsOf, type Place, type PlaceNeeds, placeOf } from "../endpoints/assignment-key.ts";
import { assignmentsOf } from "../endpoints/assignments.ts";
import { createCollector, objectsBehind, sameResourceSet } from "../resource-set.ts";
import { type ClientClass, clientClassId, clientClassOf, ruleFor } from "./client-class.ts";
import { defineEastWest } from "./east-west.ts";
import { fixedClusters } from "./fixed-clusters.ts";
import { type InboundKey, inboundClusters } from "./inbound-clusters.ts";
import { meshOf, outboundClusters } from "./outbound-clusters.ts";
import { type ClientTraits, familyOf, type OutboundKey, outboundKey } from "./outbound-key.ts";

/** Services a class of clients sees and the rules for them, and what must be known of where a client runs. */
interface OutboundPlan {
  readonly services: readonly Pick<OutboundKey, "service" | "ports" | "rule">[];
  readonly needs: PlaceNeeds;
}

interface OutboundSetKey {
  readonly client: ClientClass;
  readonly traits: ClientTraits;
  readonly place: Place;
}

interface SetKey {
  readonly outbound: OutboundSetKey;
  readonly inbound: readonly ClusterInput[];
}

const outboundSetId = ({ client, traits, place }: OutboundSetKey): string => JSON.stringify([clientClassId(client), Object.values(traits), place]);

/**
 * Clusters of sidecars and gateways. A cluster is built and encoded once per content, whoever asks: what a client sees only decides which
 * inputs are put together, and pods of one Deployment end in one set, because their inbound clusters are compared by content.
 */
export function createClusterProvider(ctx: GenerateContext): ResourceProvider {
  const queries = defineClusterQueries(ctx);
  const eastWest = defineEastWest(ctx);
  const outboundOf = (view: ProxyView): OutboundSetKey => {
    const client = clientClassOf(ctx, view);
    const router = view.type !== "sidecar";
    const traits: ClientTraits = {
      router,
      identity: view.hasIdentity,
      family: familyOf(view),
      located: view.locality.region !== "",
      sni: router && eastWest(view.labels),
    };
    return { client, traits, place: placeOf(view, queries.plan(client).needs) };
  };
  const setOf = (view: ProxyView): SetKey => ({ outbound: outboundOf(view), inbound: queries.inbound(inboundOf(clientClassOf(ctx, view), view)) });
  return {
    typeUrl: CLUSTER_TYPE,
    companion: { typeUrl: ENDPOINT_TYPE, namesOf: (resource) => (isEdsCluster(resource) ? [resource.name] : []) },
    *prepare(view) {
      for (const key of queries.keys(outboundOf(view))) {
        const inputs = queries.outbound.try(key);
        for (const input of inputs.ok ? inputs.value : []) if (!("refused" in input)) queries.cluster.try(input);
        yield;
      }
    },
    offered: (view) => queries.set(setOf(view)),
    provenance: (view, name) => provenanceOf({ ctx, queries, name }, setOf(view), inboundOf(clientClassOf(ctx, view), view)),
  };
}

function inboundOf(client: ClientClass, view: ProxyView): InboundKey {
  const addresses = view.type === "sidecar" ? view.addresses : [];
  return { client, addresses, family: familyOf(view), captured: view.interception !== "NONE" };
}

/** Clusters that ask for their endpoints, by encoded resource: what is sent is never decoded again. */
const edsClusters = new WeakSet<Encoded>();

const isEdsCluster = (resource: Encoded): boolean => edsClusters.has(resource);

type ClusterQueries = ReturnType<typeof defineClusterQueries>;

function defineClusterQueries(ctx: GenerateContext) {
  const { engine } = ctx;
  const plan = engine.query<ClientClass, OutboundPlan>({ name: "clusters.plan", id: clientClassId, compute: (client) => outboundPlan(ctx, client) });
  const keys = engine.query<OutboundSetKey, readonly OutboundKey[]>({
    name: "clusters.keys",
    id: outboundSetId,
    compute: ({ client, traits, place }) =>
      plan(client).services.map((one) => outboundKey({ ...one, traits, place: assignmentsOf(ctx).traits(one.service)?.inline === true ? place : {} })),
  });
  const outbound = engine.query({ name: "clusters.outbound", id: ({ id }: OutboundKey) => id, compute: (key) => outboundClusters(ctx, key) });
  const inbound = engine.query<InboundKey, readonly ClusterInput[]>({
    name: "clusters.inbound",
    id: ({ client, addresses, family, captured }) => JSON.stringify([clientClassId(client), addresses, family, captured]),
    compute: (key) => (key.addresses.length === 0 ? [] : inboundClusters(ctx, key)),
  });
  const cluster = engine.query<ClusterInput, Encoded>({ name: "clusters.cluster", id: inputId, compute: encodedCluster, same: sameEncoded });
  const outboundSet = engine.query<OutboundSetKey, ResourceSet>({
    name: "clusters.outboundSet",
    id: outboundSetId,
    compute: (key) => collectOutbound({ ctx, keys: keys(key), traits: key.traits, outbound, cluster }),
    same: sameResourceSet,
  });
  const set = engine.query<SetKey, ResourceSet>({
    name: "clusters.set",
    id: (key) => `${outboundSetId(key.outbound)}#${key.inbound.map(inputId).join()}`,
    compute: ({ outbound: outboundKey, inbound: inputs }) => {
      const shared = outboundSet(outboundKey);
      const collector = createCollector(shared);
      for (const input of inputs) collector.take(input.name, cluster.try(input));
      return collector.set;
    },
    same: sameResourceSet,
  });
  return { plan, keys, outbound, inbound, cluster, set };
}

function outboundPlan(ctx: GenerateContext, client: ClientClass): OutboundPlan {
  const scope = ctx.lookups.scope({ namespace: client.namespace, sidecar: client.sidecar });
  const { traits, plan } = assignmentsOf(ctx);
  const services = scope.services.map((service) => ({
    service: { namespace: service.namespace, host: service.host },
    ports: service.ports,
    rule: ruleFor(ctx, client, service),
  }));
  const inline = services.flatMap(({ service, rule }) => {
    const known = traits(service);
    if (known?.inline !== true) return [];
    const subsets = ["", ...(rule?.spec.subsets ?? []).map(({ name }) => name)];
    return known.ports.flatMap((port) =>
      subsets.flatMap((subset) => plan({ name: "", cluster: { port, subset, host: service.host }, sni: false, service, rule }) ?? []),
    );
  });
  return { services, needs: needsOf(inline, ctx.inputs.networks.has("networks") && inline.length > 0) };
}

interface CollectParts {
  readonly ctx: GenerateContext;
  readonly keys: readonly OutboundKey[];
  readonly traits: ClientTraits;
  readonly outbound: Query<OutboundKey, ReturnType<typeof outboundClusters>>;
  readonly cluster: Query<ClusterInput, Encoded>;
}

function collectOutbound({ ctx, keys, traits, outbound, cluster }: CollectParts): ResourceSet {
  const collector = createCollector();
  for (const key of keys) {
    const inputs = outbound.try(key);
    if (!inputs.ok) collector.fail(`outbound|*||${key.service.host}`, inputs.error.message);
    for (const input of inputs.ok ? inputs.value : []) {
      if ("refused" in input) collector.fail(input.name, input.refused);
      else collector.take(input.name, cluster.try(input));
    }
  }
  for (const input of fixedClusters(meshOf(ctx), traits)) collector.take(input.name, cluster.try(input));
  return collector.set;
}

function encodedCluster(input: ClusterInput): Encoded {
  const resource = encoded(CLUSTER_TYPE, input.name, ClusterSchema, buildCluster(input));
  if (input.discovery === "eds") edsClusters.add(resource);
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
  if (key.inbound.some((input) => input.name === name)) return objectsBehind(ctx.engine, queries.inbound, inbound);
  for (const one of queries.keys(key.outbound)) {
    const inputs = queries.outbound.try(one);
    if (!inputs.ok || !inputs.value.some((input) => input.name === name)) continue;
    return [...new Set([...objectsBehind(ctx.engine, queries.outbound, one), ...(one.rule?.keys ?? [])])];
  }
  return [];
}
