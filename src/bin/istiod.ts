import { usableAccess } from "../cluster/usable-access.ts";
import { launch } from "../serve/launch.ts";

launch({
  name: "istiod",
  about: "the control plane of the mesh in one process",
  sources: [],
  connect: async (context) => {
    const access = await usableAccess(context);
    if (access === undefined) return undefined;
    // Loaded only where there is a cluster: files alone do not pay for it.
    return (await import("../cluster/connect-cluster.ts")).connectCluster(context, access);
  },
});
