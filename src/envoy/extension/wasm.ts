import { create } from "@bufbuild/protobuf";
import { type Any, AnySchema, durationFromMs, StringValueSchema } from "@bufbuild/protobuf/wkt";
import { type TypedExtensionConfig, TypedExtensionConfigSchema } from "../../gen/envoy/config/core/v3/extension_pb.js";
import { RBACSchema as HttpRbacSchema } from "../../gen/envoy/extensions/filters/http/rbac/v3/rbac_pb.js";
import { WasmSchema as HttpWasmSchema } from "../../gen/envoy/extensions/filters/http/wasm/v3/wasm_pb.js";
import { RBACSchema as NetworkRbacSchema } from "../../gen/envoy/extensions/filters/network/rbac/v3/rbac_pb.js";
import { WasmSchema as NetworkWasmSchema } from "../../gen/envoy/extensions/filters/network/wasm/v3/wasm_pb.js";
import {
  PluginConfig_FailurePolicy as FailurePolicy,
  type PluginConfig,
  PluginConfigSchema,
} from "../../gen/envoy/extensions/wasm/v3/wasm_pb.js";
import { anyOf } from "../../wire/encode.ts";

/** All that may influence the configuration of one Wasm module. */
export interface WasmInput {
  /** Name of the resource: filters ask for it by this. */
  readonly name: string;
  /** Name of the plugin in logs and statistics. */
  readonly plugin: string;
  readonly filter: "http" | "network";
  readonly rootId: string;
  /** Configuration of the plugin as JSON; undefined = none. */
  readonly configuration: string | undefined;
  readonly code: { readonly file: string } | { readonly url: string; readonly sha256: string };
  readonly environment: Readonly<Record<string, string>>;
  readonly hostEnvironment: readonly string[];
  readonly onFailure: "close" | "open" | "reload";
}

const ON_FAILURE = {
  close: FailurePolicy.FAIL_CLOSED,
  open: FailurePolicy.FAIL_OPEN,
  reload: FailurePolicy.FAIL_RELOAD,
} as const satisfies Record<WasmInput["onFailure"], FailurePolicy>;

/** How long a module may take to come. */
const DOWNLOAD_TIMEOUT_MS = 30_000;

/** Builds the configuration of a Wasm module as filters ask for it (ECDS). */
export function buildWasmExtension(input: WasmInput): TypedExtensionConfig {
  const config = pluginConfig(input);
  const typedConfig: Any =
    input.filter === "http"
      ? anyOf(HttpWasmSchema, create(HttpWasmSchema, { config }))
      : anyOf(NetworkWasmSchema, create(NetworkWasmSchema, { config }));
  return create(TypedExtensionConfigSchema, { name: input.name, typedConfig });
}

/**
 * What stands in for a module that cannot come, by its own word on failures: all is let through, or nothing is. A configuration that Envoy
 * refuses would leave the filter without one, and then nothing passes either way.
 */
export function buildMissingExtension({ name, filter, onFailure }: Pick<WasmInput, "name" | "filter" | "onFailure">): TypedExtensionConfig {
  const rules = onFailure === "open" ? {} : { rules: {} };
  const typedConfig =
    filter === "http"
      ? anyOf(HttpRbacSchema, create(HttpRbacSchema, rules))
      : anyOf(NetworkRbacSchema, create(NetworkRbacSchema, { ...rules, statPrefix: "extension." }));
  return create(TypedExtensionConfigSchema, { name, typedConfig });
}

function pluginConfig(input: WasmInput): PluginConfig {
  return create(PluginConfigSchema, {
    name: input.plugin,
    rootId: input.rootId,
    failurePolicy: ON_FAILURE[input.onFailure],
    configuration:
      input.configuration === undefined
        ? create(AnySchema)
        : anyOf(StringValueSchema, create(StringValueSchema, { value: input.configuration })),
    vm: {
      case: "vmConfig",
      value: {
        runtime: "envoy.wasm.runtime.v8",
        code: codeOf(input.code),
        environmentVariables: { hostEnvKeys: [...input.hostEnvironment], keyValues: { ...input.environment } },
      },
    },
  });
}

/** A remote module is fetched by the agent, which puts a file in its place: no cluster is named, and Envoy alone could not fetch it. */
function codeOf(code: WasmInput["code"]) {
  if ("file" in code) return { specifier: { case: "local", value: { specifier: { case: "filename", value: code.file } } } } as const;
  return {
    specifier: {
      case: "remote",
      value: {
        httpUri: {
          uri: code.url,
          timeout: durationFromMs(DOWNLOAD_TIMEOUT_MS),
          httpUpstreamType: { case: "cluster", value: "_" },
        },
        sha256: code.sha256,
      },
    },
  } as const;
}
