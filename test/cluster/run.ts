// A cluster to try things on: `sudo node test/cluster/run.ts`, then `kubectl --kubeconfig …` in another terminal. Ctrl-C removes everything.
import { holdProcess } from "../../src/base/clock.ts";
import { echoImage, idleImage, nodeClusterImpossible, programImage, startNodeCluster } from "./start-node-cluster.ts";

const reason = nodeClusterImpossible();
if (reason !== undefined) {
  process.stderr.write(`no cluster: ${reason}\n`);
  process.exit(1);
}
const images = { echo: echoImage, idle: idleImage, proxyv2: programImage("istio-agent"), pilot: programImage("istiod") };
const cluster = await startNodeCluster({ images });
const letGo = holdProcess();
process.stdout.write(`export KUBECONFIG=${cluster.kubeconfig}\nimages: ${Object.keys(images).join(", ")}; end with Ctrl-C\n`);
for (const signal of ["SIGINT", "SIGTERM"] as const) {
  process.once(signal, () => void cluster.stop().then(letGo));
}
