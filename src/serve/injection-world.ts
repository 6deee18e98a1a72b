import { matchesLabels } from "../base/labels.ts";
import type { Node } from "../config/kinds/node/node.ts";
import type { ConfigObject } from "../config/object.ts";
import type { ProxyConfig } from "../gen/istio/networking/v1beta1/proxy_config_pb.js";
import { decideNative } from "../inject/native-sidecars.ts";
import type { ReadInjection } from "../inject/read-injection.ts";
import type { InjectionWorld } from "../webhooks/inject-review.ts";
import type { ClusterInjection } from "./cluster-link.ts";
import type { Parts } from "./control-plane.ts";
import { followInjectionTexts } from "./injection-texts.ts";

export interface FollowedInjection extends InjectionWorld {
  /** Why what is written about injection is not in force. */
  readonly fault: string | undefined;
  stop(): void;
}

export interface InjectionPlace {
  /** Of this control plane. */
  readonly namespace: string;
  /** What the cluster says, where there is one. */
  readonly inCluster: ClusterInjection | undefined;
}

/** All that injection asks for: its configuration, the mesh's, and what is known of nodes, namespaces and ProxyConfigs, each as it is at the moment. */
export async function followInjection(parts: Parts, { namespace, inCluster }: InjectionPlace): Promise<FollowedInjection> {
  const { mesh, world } = parts;
  const { settings } = mesh.current;
  const revision = settings.revision || "default";
  const texts = await followInjectionTexts(parts.options, inCluster);
  const { objects } = world.inputs;
  const allOf = <S>(kind: string): readonly ConfigObject<S>[] =>
    objects.keys("kind", kind).flatMap((key) => (objects.get(key) as ConfigObject<S> | undefined) ?? []);
  return {
    get fault() {
      return texts.fault;
    },
    stop: texts.stop,
    settings: () => ({
      config: texts.current.config,
      templates: texts.current.templates,
      values: placed(texts.current, { revision, namespace, cluster: settings.clusterId, trustBundles: settings.trustBundles }),
      mesh: mesh.current.mesh,
      revision,
      compliancePolicy: settings.compliancePolicy,
    }),
    native(boundTo) {
      const nodes = allOf<Node>("Node").map(({ name, spec }) => ({ name, kubelet: spec.kubelet ?? "" }));
      return decideNative(settings.nativeSidecars, nodes, boundTo);
    },
    proxyConfigs: (podNamespace, labels) =>
      proxyConfigsFor(allOf<ProxyConfig>("ProxyConfig"), { podNamespace, labels, rootNamespace: mesh.current.mesh.rootNamespace }),
    openShift: (name) => (settings.platform === "openshift" ? (objects.get(`Namespace//${name}`)?.annotations ?? {}) : undefined),
  };
}

/** Where this control plane stands, unless the values say otherwise. */
function placed({ values }: ReadInjection, { revision, namespace, cluster, trustBundles }: Stand): ReadInjection["values"] {
  const { global, pilot } = values;
  return {
    ...values,
    revision: values.revision || (revision === "default" ? "" : revision),
    global: {
      ...global,
      istioNamespace: global.istioNamespace === "istio-system" ? namespace : global.istioNamespace,
      multiCluster: { clusterName: global.multiCluster.clusterName || cluster },
    },
    ...(trustBundles && { pilot: { ...pilot, env: { ENABLE_CLUSTER_TRUST_BUNDLE_API: true, ...pilot.env } } }),
  };
}

/** Where a control plane stands. */
interface Stand {
  readonly revision: string;
  readonly namespace: string;
  readonly cluster: string;
  /** Whether pods find the roots in a ClusterTrustBundle. */
  readonly trustBundles: boolean;
}

interface ProxyConfigQuestion {
  readonly podNamespace: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly rootNamespace: string;
}

/** The ProxyConfigs for a pod: of the mesh, of its namespace, and those that select it, each over the ones before; of two the older counts. */
function proxyConfigsFor(all: readonly ConfigObject<ProxyConfig>[], question: ProxyConfigQuestion): readonly ProxyConfig[] {
  const { podNamespace, labels, rootNamespace } = question;
  const oldest = (found: readonly ConfigObject<ProxyConfig>[]): readonly ProxyConfig[] =>
    [...found]
      .sort((a, b) => a.createdAt - b.createdAt || (a.name < b.name ? -1 : 1))
      .slice(0, 1)
      .map(({ spec }) => spec);
  const isGeneral = ({ spec }: ConfigObject<ProxyConfig>): boolean => Object.keys(spec.selector?.matchLabels ?? {}).length === 0;
  const inNamespace = (name: string) => all.filter((object) => object.namespace === name);
  const selecting = inNamespace(podNamespace).filter(
    (object) => !isGeneral(object) && matchesLabels(object.spec.selector?.matchLabels ?? {}, labels),
  );
  return [
    ...oldest(inNamespace(rootNamespace).filter(isGeneral)),
    ...(podNamespace === rootNamespace ? [] : oldest(inNamespace(podNamespace).filter(isGeneral))),
    ...oldest(selecting),
  ];
}
