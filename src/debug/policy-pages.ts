import type { Registry } from "@bufbuild/protobuf";
import { type Labels, matchesLabels } from "../base/labels.ts";
import { type ConfigObject, objectKey } from "../config/object.ts";
import type { PeerAuthentication } from "../gen/istio/security/v1beta1/peer_authentication_pb.js";
import { mtlsModesOf } from "../generate/listeners/inbound/mtls-mode.ts";
import { telemetryChoiceOf } from "../generate/listeners/settings/telemetry.ts";
import { policyChoiceOf } from "../generate/policies/policy-choice.ts";
import type { ProxyView } from "../model/proxy.ts";
import { messageRegistry } from "../wire/json.ts";
import type { PoliciesByNamespace, PolicyRecord } from "./api-mesh-types.ts";
import { specJson } from "./config-objects.ts";
import type { DebugDeps } from "./debug-deps.ts";
import type { HttpAnswer } from "./http-route.ts";
import { askedStream, ok, type Page } from "./page.ts";

const ONE = "?proxyID=name.namespace shows those that hold for a proxy";

/** Pages about policies: all of them, or those that hold for one proxy, as the queries choose them that its configuration is made by. */
export const policyPages = (deps: DebugDeps): readonly Page[] => [
  {
    path: "/debug/authenticationz",
    about: `PeerAuthentications and RequestAuthentications; ${ONE}, and the modes of mutual TLS that come of them`,
    divisible: true,
    answer: (query) => policyPage(deps, query, authentications),
  },
  {
    path: "/debug/authorizationz",
    about: `AuthorizationPolicies; ${ONE}`,
    divisible: true,
    answer: (query) =>
      policyPage(deps, query, ({ deps: { world }, view, chosen, rootNamespace }) => {
        const keys = view && new Set(policyChoiceOf(world.context)(view).authorization);
        const policies = chosen("AuthorizationPolicy", (object) => keys?.has(objectKey(object)) ?? true);
        return { authorization_policies: { namespace_to_policies: policies, root_namespace: rootNamespace } };
      }),
  },
  {
    path: "/debug/telemetryz",
    about: `Telemetry objects; ${ONE}`,
    divisible: true,
    answer: (query) =>
      policyPage(deps, query, ({ deps: { world }, view, chosen, rootNamespace }) => {
        const keys = view && new Set(telemetryChoiceOf(world.context)(view));
        const telemetries = chosen("Telemetry", (object) => keys?.has(objectKey(object)) ?? true);
        return { telemetries: { namespace_to_telemetries: telemetries, root_namespace: rootNamespace } };
      }),
  },
];

/** What a page of policies is made from. */
interface Asked {
  readonly deps: DebugDeps;
  /** The proxy that is asked about, where one is. */
  readonly view: ProxyView | undefined;
  readonly rootNamespace: string;
  /** Objects of a kind that hold, by namespace. */
  chosen(kind: string, holds: (object: ConfigObject) => boolean): PoliciesByNamespace;
}

async function policyPage(deps: DebugDeps, query: URLSearchParams, bodyOf: (asked: Asked) => unknown): Promise<HttpAnswer> {
  const registry = await messageRegistry();
  const asked = query.has("proxyID") ? askedStream(deps.xds.state(), query) : undefined;
  if (asked !== undefined && !("stream" in asked)) return asked;
  return ok(
    bodyOf({
      deps,
      view: asked?.stream.view,
      rootNamespace: deps.mesh.current.mesh.rootNamespace,
      chosen: (kind, holds) => byNamespace(deps, (object) => object.kind === kind && holds(object), registry),
    }),
  );
}

function authentications({ deps: { world }, view, chosen, rootNamespace }: Asked): unknown {
  const requests = view && new Set(policyChoiceOf(world.context)(view).authentication);
  const peers = chosen("PeerAuthentication", (object) => view === undefined || isForPeer(object as PeerObject, view, rootNamespace));
  return {
    peer_authentications: { namespace_to_policies: peers, root_namespace: rootNamespace },
    request_authentications: {
      namespace_to_policies: chosen("RequestAuthentication", (object) => requests?.has(objectKey(object)) ?? true),
      root_namespace: rootNamespace,
    },
    ...(view !== undefined && { mtls: mtlsModesOf(world.context)(view) }),
  };
}

type PeerObject = ConfigObject<PeerAuthentication>;

/** The levels from which the modes of a workload are made: the mesh's, its namespace's, its own. */
function isForPeer({ namespace, spec }: PeerObject, view: ProxyView, root: string): boolean {
  const selector: Labels = spec.selector?.matchLabels ?? {};
  if (namespace === root) return Object.keys(selector).length === 0;
  return namespace === view.namespace && matchesLabels(selector, view.labels);
}

function byNamespace({ store }: DebugDeps, isWanted: (object: ConfigObject) => boolean, registry: Registry): PoliciesByNamespace {
  const objects = store.list().flatMap(({ object }) => (isWanted(object) ? [object] : []));
  const groups = Map.groupBy(objects, ({ namespace }) => namespace);
  return Object.fromEntries([...groups].map(([namespace, list]) => [namespace, list.map((object) => policyRecord(object, registry))]));
}

const policyRecord = ({ name, namespace, annotations, spec }: ConfigObject, registry: Registry): PolicyRecord => ({
  name,
  namespace,
  annotations,
  spec: specJson(spec, registry),
});
