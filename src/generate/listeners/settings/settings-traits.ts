import type { JsonObject, JsonValue } from "@bufbuild/protobuf";
import type { ConfigObject } from "../../../config/object.ts";
import type { Query } from "../../../engine/index.ts";
import {
  MeshConfig_ExtensionProvider_ServiceAttributeEnrichment as Enrichment,
  type MeshConfig_ExtensionProvider,
} from "../../../gen/istio/mesh/v1alpha1/mesh_config_pb.js";
import type { Telemetry } from "../../../gen/istio/telemetry/v1alpha1/telemetry_pb.js";
import type { ProxyView } from "../../../model/proxy.ts";
import { type GenerateContext, type ScopeKey, scopeId } from "../../context.ts";
import { narrowedProxyConfig } from "../../proxy-config.ts";
import { RELEVANT_PROXY_CONFIG, type SettingsTraits, type TracedWorkload } from "../traits.ts";
import type { WorkloadQuery } from "./telemetry.ts";

type Context = Pick<GenerateContext, "engine" | "inputs" | "lookups">;

/** What the mesh's providers ask of a proxy. */
interface ProviderNeeds {
  /** Hosts of collectors. */
  readonly hosts: readonly string[];
  /** A default tracer is named: all workloads are traced. */
  readonly tracedByDefault: boolean;
  /** Some tracer names services by OpenTelemetry's conventions. */
  readonly otelNames: boolean;
  /** Log lines go to the access log service of the proxy's bootstrap. */
  readonly logService: boolean;
}

/** Picks from a proxy what its settings depend on. Its name counts only where a tracer reports under it. */
export function defineSettingsTraits(
  ctx: Context,
  telemetryFor: Query<WorkloadQuery, readonly string[]>,
): (view: ProxyView) => SettingsTraits {
  const needs = ctx.engine.query<"mesh", ProviderNeeds>({ name: "providerNeeds", compute: () => needsOf(ctx) });
  const traces = ctx.engine.query<string, boolean>({
    name: "telemetryTraces",
    compute: (key) => ((ctx.inputs.objects.get(key) as ConfigObject<Telemetry> | undefined)?.spec.tracing.length ?? 0) > 0,
  });
  const unreachable = ctx.engine.query<ScopeKey, readonly string[]>({
    name: "unreachableProviders",
    id: scopeId,
    compute: (scope) => {
      const { hosts } = needs("mesh");
      if (hosts.length === 0) return [];
      const known = new Set(ctx.lookups.scope(scope).services.map(({ host }) => host));
      return hosts.filter((host) => !known.has(host));
    },
  });
  return (view) => {
    const { namespace, labels, metadata, sidecar } = view;
    const telemetry = telemetryFor({ namespace, labels });
    const { tracedByDefault, otelNames, logService } = needs("mesh");
    return {
      telemetry,
      extensions: ctx.lookups.extensionsFor({ namespace, labels }),
      proxyConfig: narrowedProxyConfig(metadata.proxyConfig, RELEVANT_PROXY_CONFIG),
      idleTimeout: metadata.idleTimeout,
      acceptHttp10: metadata.http10,
      traced: tracedByDefault || telemetry.some((key) => traces(key)) ? tracedWorkload(view, otelNames) : undefined,
      unreachable: unreachable({ namespace, sidecar }),
      ...(logService && view.hasIdentity && { logService: true }),
      ...(metadata.standardMetrics && { standardMetrics: true }),
    };
  };
}

function needsOf({ inputs }: Context): ProviderNeeds {
  const mesh = inputs.mesh.get("mesh");
  const providers = mesh?.extensionProviders ?? [];
  const hosts = new Set(providers.flatMap(hostOf));
  return {
    hosts: [...hosts].sort(),
    tracedByDefault: (mesh?.defaultProviders?.tracing.length ?? 0) > 0,
    logService: mesh?.enableEnvoyAccessLogService === true,
    otelNames: providers.some(
      ({ provider }) =>
        provider.case === "opentelemetry" && provider.value.serviceAttributeEnrichment === Enrichment.OTEL_SEMANTIC_CONVENTIONS,
    ),
  };
}

function hostOf({ provider: { value } }: MeshConfig_ExtensionProvider): readonly string[] {
  return value !== undefined && "service" in value && value.service !== "" ? [value.service.slice(value.service.indexOf("/") + 1)] : [];
}

/** Defaults are Istio's. */
function tracedWorkload(view: ProxyView, otelNames: boolean): TracedWorkload {
  const { labels, namespace, clusterId } = view;
  const raw = JSON.parse(view.metadata.raw) as JsonObject;
  return {
    // Tracers demand a name, and not every proxy says what its cluster is called.
    name: view.metadata.nodeCluster || `${view.name || "unknown"}.${namespace || "default"}`,
    otelName: otelNames ? otelName(view, raw) : "",
    service: labels["service.istio.io/canonical-name"] ?? "unknown",
    revision: labels["service.istio.io/canonical-revision"] ?? "latest",
    meshId: text(raw.MESH_ID) || "unknown",
    clusterId: clusterId || "unknown",
    namespace: namespace || "default",
  };
}

/** By OpenTelemetry's "Specify resource attributes using Kubernetes annotations": annotation, labels, the owner's name, the pod's. */
function otelName({ labels, name }: ProxyView, raw: JsonObject): string {
  const annotations = raw.ANNOTATIONS;
  const annotated =
    typeof annotations === "object" && annotations !== null && !Array.isArray(annotations)
      ? text(annotations["resource.opentelemetry.io/service.name"])
      : "";
  return (
    annotated ||
    labels["app.kubernetes.io/instance"] ||
    labels["app.kubernetes.io/name"] ||
    text(raw.WORKLOAD_NAME) ||
    name ||
    "unknown_service"
  );
}

const text = (value: JsonValue | undefined): string => (typeof value === "string" ? value : "");
