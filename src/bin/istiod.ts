import { launch } from "../serve/launch.ts";

launch({
  name: "istiod",
  about: "the control plane of the mesh in one process",
  sources: [],
  // Loaded only where a cluster is asked for: files alone do not pay for it.
  connect: async (context) => (await import("../cluster/connect-cluster.ts")).connectCluster(context),
});
