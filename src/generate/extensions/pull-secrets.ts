import { create, type DescMessage, fromBinary, type Message } from "@bufbuild/protobuf";
import { contentHash } from "../../base/hash.ts";
import { Interned } from "../../base/interned.ts";
import type { PullSecretSource } from "../../credentials/pull-secret.ts";
import { TypedExtensionConfigSchema } from "../../gen/envoy/config/core/v3/extension_pb.js";
import { WasmSchema as HttpWasmSchema } from "../../gen/envoy/extensions/filters/http/wasm/v3/wasm_pb.js";
import { WasmSchema as NetworkWasmSchema } from "../../gen/envoy/extensions/filters/network/wasm/v3/wasm_pb.js";
import type { PluginConfig } from "../../gen/envoy/extensions/wasm/v3/wasm_pb.js";
import type { ProxyView } from "../../model/proxy.ts";
import { anyOf, encoded } from "../../wire/encode.ts";
import type { Encoded, ResourceSet } from "../../wire/encoded.ts";
import { typeUrlOf } from "../../wire/type-urls.ts";
import type { ResourceProvider } from "../../xds/provider.ts";
import type { GenerateContext } from "../context.ts";
import type { WithheldSecret } from "../secrets/secret-provider.ts";
import { type ExtensionObject, PULL_SECRET, wasmInput } from "./extension-rule.ts";

export interface PullSecretOptions {
  readonly source: PullSecretSource;
  readonly withheld?: (secret: WithheldSecret) => void;
}

const REFERENCE = /^kubernetes:\/\/([^/]+)\/([^/]+)$/;

/**
 * Puts logins for registries into configurations of Wasm modules that name one, as Istio does: the agent fetches the module with it and Envoy never
 * sees it. Only a proxy that has proved who it is gets one, and only where a module that applies to it names it; otherwise it is empty, and
 * the agent does without the module. No query takes part, as with all secrets.
 */
export function withPullSecrets(
  ctx: Pick<GenerateContext, "inputs" | "lookups">,
  provider: ResourceProvider,
  { source, withheld = () => {} }: PullSecretOptions,
): ResourceProvider {
  const sets = new Interned<ResourceSet>();
  /** Names of resources to what they refer to; most proxies have none. */
  const referencesOf = ({ namespace, labels }: ProxyView): ReadonlyMap<string, string> => {
    const found = ctx.lookups.extensionsFor({ namespace, labels }).flatMap((key) => {
      const object = ctx.inputs.objects.get(key) as ExtensionObject | undefined;
      const input = object === undefined ? undefined : wasmInput(object);
      const reference = input?.environment[PULL_SECRET];
      return input === undefined || reference === undefined ? [] : [[input.name, reference] as const];
    });
    return new Map(found);
  };
  const secretFor = (view: ProxyView, reference: string): string => {
    const [, namespace = "", name = ""] = REFERENCE.exec(reference) ?? [];
    const looked = view.proven
      ? source.pullSecret({ namespace, name })
      : { is: "refused" as const, reason: "the proxy has not proved who it is; secrets are served on the secure port" };
    if (looked.is === "found") return looked.value.reveal();
    withheld({ node: view.id, namespace: view.namespace, name: reference, why: looked.is, reason: looked.reason });
    return "";
  };
  return {
    ...provider,
    asksAnew: true,
    offered(view, wanted) {
      const set = provider.offered(view, wanted);
      const references = referencesOf(view);
      if (references.size === 0) return set;
      const resources = new Map(set.resources);
      for (const [name, reference] of references) {
        const resource = resources.get(name);
        if (resource !== undefined) resources.set(name, withSecret(resource, secretFor(view, reference)));
      }
      const id = contentHash(JSON.stringify([[...resources.values()].map((one) => [one.name, one.version]), set.failed]));
      return sets.of(id, () => ({ resources, failed: set.failed }));
    },
  };
}

/** The resource with a secret in the place of its name. What stands in for a module that is not fetched stays as it is. */
function withSecret(resource: Encoded, secret: string): Encoded {
  const config = fromBinary(TypedExtensionConfigSchema, resource.body);
  const replace = <S extends DescMessage>(schema: S): Encoded => {
    const wasm = fromBinary(schema, config.typedConfig?.value ?? new Uint8Array()) as Message & { readonly config?: PluginConfig };
    const variables = wasm.config?.vm.value?.environmentVariables;
    if (variables !== undefined) variables.keyValues[PULL_SECRET] = secret;
    const typedConfig = anyOf(schema, wasm as Parameters<typeof anyOf<S>>[1]);
    return encoded(resource, TypedExtensionConfigSchema, create(TypedExtensionConfigSchema, { ...config, typedConfig }));
  };
  if (config.typedConfig?.typeUrl === typeUrlOf(HttpWasmSchema)) return replace(HttpWasmSchema);
  if (config.typedConfig?.typeUrl === typeUrlOf(NetworkWasmSchema)) return replace(NetworkWasmSchema);
  return resource;
}
