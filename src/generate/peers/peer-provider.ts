import { create } from "@bufbuild/protobuf";
import { isIp } from "../../base/address.ts";
import { PeerWorkloadSchema } from "../../gen/istio/v1/peer_workload_pb.js";
import { canonicalRevision, canonicalService } from "../../model/standard-metrics.ts";
import { encoded, sameEncoded } from "../../wire/encode.ts";
import type { Encoded, ResourceSet } from "../../wire/encoded.ts";
import { PEER_TYPE } from "../../wire/type-urls.ts";
import type { NameSet, ResourceProvider } from "../../xds/provider.ts";
import type { GenerateContext } from "../context.ts";
import { objectsBehind, sameResourceSet } from "../resource-set.ts";

/**
 * Who runs at an address, for agents that label metrics: each asks for the peers that its Envoy has met, by
 * `<namespace>/<service account>/<address>`, and for no others. So no agent knows the whole mesh, and a change of a workload reaches only those that have met it.
 */
export function createPeerProvider(ctx: GenerateContext): ResourceProvider {
  const { engine, registry, settings } = ctx;
  const peer = engine.query<string, Encoded | undefined>({
    name: "peers.workload",
    compute: (name) => {
      const [namespace = "", account, address = ""] = name.split("/");
      const found = namespace !== "" && isIp(address) ? registry.workloadAt(address, namespace) : undefined;
      // Another identity is another workload: the address was somebody else's, or is that of a gateway in between.
      if (found === undefined || (found.serviceAccount !== "" && found.serviceAccount !== account)) return undefined;
      const { labels, name: workload } = found;
      const message = create(PeerWorkloadSchema, {
        workload,
        namespace: found.namespace,
        canonicalService: canonicalService(labels, workload),
        canonicalRevision: canonicalRevision(labels),
        cluster: labels["topology.istio.io/cluster"] || settings.clusterId,
        app: labels.app ?? "",
        version: labels.version ?? "",
      });
      return encoded({ typeUrl: PEER_TYPE, name }, PeerWorkloadSchema, message);
    },
    same: (a, b) => a === b || (a !== undefined && b !== undefined && sameEncoded(a, b)),
  });
  const set = engine.query<NameSet, ResourceSet>({
    name: "peers.set",
    id: ({ id }) => String(id),
    compute: ({ names }) => {
      const found = [...names].map((name) => peer(name)).filter((one) => one !== undefined);
      return { resources: new Map(found.map((one) => [one.name, one])), failed: [] };
    },
    same: sameResourceSet,
  });
  return {
    typeUrl: PEER_TYPE,
    *prepare() {},
    offered: (_, { names }) => set(names),
    provenance: (_, name) => objectsBehind(engine, peer, name),
    askedBy: () => false,
  };
}
