import { contentHash } from "../../base/hash.ts";
import { buildMissingExtension, buildWasmExtension, type WasmInput } from "../../envoy/extension/wasm.ts";
import { TypedExtensionConfigSchema } from "../../gen/envoy/config/core/v3/extension_pb.js";
import type { ProxyView } from "../../model/proxy.ts";
import { encoded, sameEncoded } from "../../wire/encode.ts";
import type { Encoded, ResourceSet } from "../../wire/encoded.ts";
import { EXTENSION_CONFIG_TYPE, LISTENER_TYPE } from "../../wire/type-urls.ts";
import type { ResourceProvider } from "../../xds/provider.ts";
import type { GenerateContext } from "../context.ts";
import { createCollector, sameResourceSet } from "../resource-set.ts";
import { type ExtensionObject, wasmInput } from "./extension-rule.ts";

interface ModuleKey {
  readonly input: WasmInput;
  /** Somebody beside the proxy fetches modules that are not there as files. */
  readonly fetched: boolean;
}

interface ModulesKey {
  readonly keys: readonly string[];
  readonly fetched: boolean;
}

/** Configurations of Wasm modules, which filters ask for by name (ECDS). A proxy gets those of its own workload, whatever it asks for. */
export function createWasmProvider(ctx: GenerateContext): ResourceProvider {
  const config = ctx.engine.query<ModuleKey, Encoded>({
    name: "wasmExtension",
    id: (key) => contentHash(JSON.stringify(key)),
    same: sameEncoded,
    compute: ({ input, fetched }) => {
      const message = fetched || "file" in input.code ? buildWasmExtension(input) : buildMissingExtension(input);
      return encoded({ typeUrl: EXTENSION_CONFIG_TYPE, name: input.name }, TypedExtensionConfigSchema, message);
    },
  });
  const inputOf = (key: string): WasmInput | undefined => {
    const object = ctx.inputs.objects.get(key) as ExtensionObject | undefined;
    return object === undefined ? undefined : wasmInput(object);
  };
  const set = ctx.engine.query<ModulesKey, ResourceSet>({
    name: "wasmExtensions",
    id: ({ keys, fetched }) => `${fetched}|${keys.join()}`,
    same: sameResourceSet,
    compute: ({ keys, fetched }) => {
      const collector = createCollector();
      for (const input of keys.map(inputOf)) if (input !== undefined) collector.take(input.name, config.try({ input, fetched }));
      return collector.set;
    },
  });
  const keysOf = ({ namespace, labels }: ProxyView): readonly string[] => ctx.lookups.extensionsFor({ namespace, labels });
  return {
    typeUrl: EXTENSION_CONFIG_TYPE,
    removeAfter: [LISTENER_TYPE],
    *prepare() {},
    // Who gives a proxy its certificate fetches modules for it, too.
    offered: (view) => set({ keys: keysOf(view), fetched: view.hasIdentity !== false }),
    provenance: (view, name) => keysOf(view).filter((key) => inputOf(key)?.name === name),
  };
}
