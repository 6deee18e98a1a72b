import { existsSync, readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { create, equals, fromJson, type JsonObject, type JsonValue, type Registry } from "@bufbuild/protobuf";
import { anyUnpack } from "@bufbuild/protobuf/wkt";
import { load, loadAll } from "js-yaml";
import { describe, expect, it } from "vitest";
import { PolicyFilters } from "../../src/envoy/filters/policy-filters.ts";
import { type Filter, FilterSchema } from "../../src/gen/envoy/config/listener/v3/listener_components_pb.js";
import {
  type HttpFilter,
  HttpFilterSchema,
} from "../../src/gen/envoy/extensions/filters/network/http_connection_manager/v3/http_connection_manager_pb.js";
import { MeshConfigSchema } from "../../src/gen/istio/mesh/v1alpha1/mesh_config_pb.js";
import { type AuthorizationPolicy, AuthorizationPolicySchema } from "../../src/gen/istio/security/v1beta1/authorization_policy_pb.js";
import { type AuthorizationObject, authorizationOf } from "../../src/generate/policies/authorization.ts";
import { messageJson, messageRegistry } from "../../src/wire/json.ts";

const CORPUS = resolve(import.meta.dirname, "../../../shared/conformance/authz");

interface Case {
  readonly id: string;
  readonly inputs: readonly string[];
  readonly expected?: readonly string[];
  readonly options: {
    readonly protocol: "http" | "tcp";
    readonly customProviders: boolean;
    readonly meshConfig?: JsonValue;
    readonly trustDomain?: string;
    readonly trustDomainAliases?: readonly string[];
  };
}

interface Index {
  readonly context: { readonly services: readonly { readonly hostname: string; readonly namespace: string }[] };
  readonly cases: readonly Case[];
}

const read = (file: string): string => readFileSync(join(CORPUS, file), "utf8");

/** Policies and the filters that Istio makes of them, filter by filter as messages. */
describe.skipIf(!existsSync(CORPUS))(`authorization corpus (skipped without ${CORPUS})`, async () => {
  const index: Index = existsSync(CORPUS) ? (JSON.parse(read("index.json")) as Index) : { context: { services: [] }, cases: [] };
  const registry = await messageRegistry();
  for (const one of index.cases) {
    it(one.id, () => {
      const made = filtersOf(one, index.context.services);
      const wanted = (one.expected ?? []).map((file) => filterFrom(one.options.protocol, read(file), registry));
      expect(made.map((filter) => shown(filter, registry))).toEqual(wanted.map((filter) => shown(filter, registry)));
      for (const [position, filter] of made.entries()) expect(sameFilter(filter, wanted[position], registry)).toBe(true);
    });
  }
});

function filtersOf({ inputs, options }: Case, services: Index["context"]["services"]): readonly (Filter | HttpFilter)[] {
  const mesh = options.meshConfig === undefined ? create(MeshConfigSchema) : fromJson(MeshConfigSchema, options.meshConfig);
  const { custom, rbac } = authorizationOf(
    inputs.flatMap((file) => policiesIn(read(file))),
    {
      mesh,
      trustDomains: options.trustDomain === undefined ? [] : [options.trustDomain, ...(options.trustDomainAliases ?? [])],
      servicesByHost: (host) => services.filter(({ hostname }) => hostname === host).map(({ namespace }) => ({ namespace, host })),
      severalAuthorizers: false,
    },
  );
  const filters = new PolicyFilters({
    jwt: undefined,
    custom: options.customProviders ? custom : [],
    rbac: options.customProviders ? [] : rbac,
  });
  const { custom: asking, authorization } = options.protocol === "http" ? filters : filters.network;
  return [...asking, ...authorization];
}

function policiesIn(text: string): readonly AuthorizationObject[] {
  const documents = (loadAll(text) as (Document | null)[]).filter((document) => document !== null);
  return documents.map(({ metadata, spec }) => ({
    namespace: metadata.namespace,
    name: metadata.name,
    annotations: metadata.annotations ?? {},
    spec: fromJson(AuthorizationPolicySchema, spec) as AuthorizationPolicy,
  }));
}

interface Document {
  readonly metadata: { readonly namespace: string; readonly name: string; readonly annotations?: Record<string, string> };
  readonly spec: JsonObject;
}

const filterFrom = (protocol: "http" | "tcp", text: string, registry: Registry): Filter | HttpFilter =>
  fromJson(protocol === "http" ? HttpFilterSchema : FilterSchema, load(text) as JsonValue, { registry });

const schemaOf = (filter: Filter | HttpFilter) => (filter.$typeName === HttpFilterSchema.typeName ? HttpFilterSchema : FilterSchema);

const shown = (filter: Filter | HttpFilter, registry: Registry): JsonValue => messageJson(registry, schemaOf(filter), filter);

function sameFilter(a: Filter | HttpFilter, b: Filter | HttpFilter | undefined, registry: Registry): boolean {
  if (b === undefined || a.name !== b.name || a.configType.case !== "typedConfig" || b.configType.case !== "typedConfig") return false;
  const [left, right] = [anyUnpack(a.configType.value, registry), anyUnpack(b.configType.value, registry)];
  const schema = left === undefined ? undefined : registry.getMessage(left.$typeName);
  return schema !== undefined && left !== undefined && right !== undefined && equals(schema, left, right, { unpackAny: true, registry });
}
