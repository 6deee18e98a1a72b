import { create } from "@bufbuild/protobuf";
import { invariant } from "../base/errors.ts";
import { ClusterSchema } from "../gen/envoy/config/cluster/v3/cluster_pb.js";
import { NodeSchema } from "../gen/envoy/config/core/v3/base_pb.js";
import { readNode } from "../generate/proxy-view.ts";
import type { ProxyView } from "../model/proxy.ts";
import { encoded } from "../wire/encode.ts";
import type { Encoded, ResourceSet } from "../wire/encoded.ts";
import { CLUSTER_TYPE } from "../wire/type-urls.ts";
import type { StreamDump, StreamState, TypeState } from "../xds/state.ts";

/** The view of a sidecar in `shop`, with these fields over it. */
export function testView(fields: Partial<ProxyView> = {}): ProxyView {
  const metadata = { NAMESPACE: "shop", CLUSTER_ID: "Kubernetes", ISTIO_VERSION: "1.32.0", LABELS: { app: "web" } };
  const facts = readNode(create(NodeSchema, { id: "sidecar~10.0.0.1~web.shop~shop.svc.cluster.local", metadata }));
  invariant(!("refused" in facts), "the node is well formed");
  return { ...facts.view, sidecar: undefined, remoteCluster: "", pod: "", claim: "", ...fields };
}

/** A type that is in sync, with these fields over it. */
export const typeStateOf = (fields: Partial<TypeState>): TypeState => ({
  typeUrl: CLUSTER_TYPE,
  wildcard: true,
  names: 0,
  held: 2,
  inSync: true,
  sentNonce: "n2",
  sentAt: 1_700_000_000_000,
  ackedNonce: "n2",
  ackedAt: 1_700_000_000_100,
  nacks: 0,
  lastError: undefined,
  lastNackAt: undefined,
  rejected: [],
  failed: [],
  ...fields,
});

/** A delta stream of that sidecar, with the types given. */
export function streamOf(types: readonly TypeState[], fields: Partial<StreamState> = {}): StreamState {
  const view = testView();
  return { id: "1", node: view.id, variant: "delta", peer: "127.0.0.1:4000", connectedAt: 1_700_000_000_000, view, types, ...fields };
}

/** A cluster that differs by its stat name. */
export const clusterOf = (name: string, content = ""): Encoded =>
  encoded({ typeUrl: CLUSTER_TYPE, name }, ClusterSchema, create(ClusterSchema, { name, altStatName: content }));

/** These resources as what is offered. */
export const setOf = (...resources: readonly Encoded[]): ResourceSet => ({
  resources: new Map(resources.map((one) => [one.name, one])),
  failed: [],
});

/** What a stream of clusters holds beside what it is offered. */
export function dumpOf(view: ProxyView, held: readonly Encoded[], offered: ResourceSet): StreamDump {
  const wanted = { wildcard: true, names: { id: 0, names: new Set<string>() } };
  return { id: "1", node: create(NodeSchema, { id: view.id }), view, types: [{ typeUrl: CLUSTER_TYPE, wanted, held, offered }] };
}
