import { createNodeNetwork, type NodeNetwork, nodesImpossible } from "./nodelet/node-network.ts";
import { type Nodelet, type NodeletOptions, startNodelet } from "./nodelet/start-nodelet.ts";
import { type Cluster, type ClusterOptions, clusterImpossible, startCluster } from "./start-cluster.ts";

export { echoImage, idleImage, programImage } from "./nodelet/images.ts";
export { joinNetworks } from "./nodelet/node-network.ts";
export type { Pod } from "./nodelet/pod.ts";

export type NodeClusterOptions = Omit<NodeletOptions, "cluster" | "network"> & Pick<ClusterOptions, "apiServerFlags">;

/** A cluster whose pods run. */
export interface NodeCluster extends Cluster {
  readonly node: Nodelet;
  readonly network: NodeNetwork;
}

/** Why pods cannot run here, to skip tests with; undefined where they can. */
export const nodeClusterImpossible = (): string | undefined => clusterImpossible() ?? nodesImpossible();

/** Starts a cluster with nodes. Needs root. */
export async function startNodeCluster({ apiServerFlags = [], ...options }: NodeClusterOptions): Promise<NodeCluster> {
  const network = await createNodeNetwork();
  const { serviceCidr, machineAddress } = network;
  let cluster: Cluster | undefined;
  try {
    cluster = await startCluster({ serviceCidr, address: machineAddress, apiServerFlags });
    cluster.guard.onDeath(network.cleanUp);
    const node = await startNodelet({ ...options, cluster, network });
    const { stop } = cluster;
    return {
      ...cluster,
      node,
      network,
      async stop() {
        await node.stop();
        await network.remove();
        await stop();
      },
    };
  } catch (error) {
    await network.remove();
    await cluster?.stop();
    throw error;
  }
}
