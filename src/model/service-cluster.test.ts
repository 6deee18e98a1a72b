import { assert, describe, it } from "vitest";
import { serviceCluster } from "./service-cluster.ts";

const LABELS = { "service.istio.io/canonical-name": "canonical", "app.kubernetes.io/name": "kubernetes", app: "plain" };
const WHO = { NAMESPACE: "shop", WORKLOAD_NAME: "web", LABELS };

describe("the name of a workload in traces", () => {
  for (const { title, proxy, metadata = WHO, name } of [
    { title: "is that of the label app before others", proxy: {}, name: "plain.shop" },
    { title: "is the one that is given", proxy: { serviceCluster: "mine" }, name: "mine" },
    {
      title: "is the one of the flag, where ProxyConfig gives nobody's",
      proxy: { serviceCluster: "istio-proxy", otherwise: "flag" },
      name: "flag",
    },
    { title: "is the one of ProxyConfig before the flag's", proxy: { serviceCluster: "mine", otherwise: "flag" }, name: "mine" },
    { title: "is found, where the one that is given is nobody's", proxy: { serviceCluster: "istio-proxy" }, name: "plain.shop" },
    { title: "is the canonical name", proxy: { tracingServiceName: "CANONICAL_NAME_ONLY" }, name: "canonical" },
    {
      title: "is the canonical name with the namespace",
      proxy: { tracingServiceName: "CANONICAL_NAME_AND_NAMESPACE" },
      name: "canonical.shop",
    },
    { title: "is the workload's, without labels", proxy: {}, metadata: { ...WHO, LABELS: {} }, name: "web.shop" },
    { title: "is anybody's, without either", proxy: {}, metadata: { NAMESPACE: "shop" }, name: "istio-proxy.shop" },
    {
      title: "is anybody's, where only the canonical name is wanted and there is none",
      proxy: { tracingServiceName: "CANONICAL_NAME_ONLY" },
      metadata: { NAMESPACE: "shop" },
      name: "istio-proxy.shop",
    },
  ]) {
    it(title, () => assert.equal(serviceCluster({ serviceCluster: "", tracingServiceName: "", otherwise: "", ...proxy }, metadata), name));
  }
});
