import { quote } from "../../../base/quote.ts";
import { EnvValueSource, type VmConfig } from "../../../gen/istio/extensions/v1alpha1/shared_pb.js";
import type { WasmConfig } from "../../../gen/istio/extensions/v1alpha1/traffic_extension_pb.js";
import type { Place } from "../../checks/place.ts";
import { portFault } from "../../checks/port.ts";
import type { SchemaRules } from "../../parse/schema-rules.ts";

const SCHEMES: ReadonlySet<string> = new Set(["", "http", "https", "file", "oci"]);
/** A path, or a host with or without a port. */
const UNSCHEMED = /^(?:\/|[^\s^|{}[\]\\`:/?#]+(?::\d+)?(?:[/?#@]|$))/;
const SHA256 = /^[a-f0-9]{64}$/;
const LONGEST_NAME = 256;
const LONGEST_SECRET = 253;
const LONGEST_VALUE = 2048;

/** Bounds on the settings of a WebAssembly module, below `at` (a path that is empty or ends with a dot). */
export const wasmRules = (at: string): SchemaRules => ({
  [`${at}url`]: { minLength: 1 },
  [`${at}imagePullSecret`]: { minLength: 1, maxLength: LONGEST_SECRET },
  [`${at}pluginName`]: { minLength: 1, maxLength: LONGEST_NAME },
  [`${at}vmConfig.env`]: { maxItems: 256, uniqueBy: "name" },
  [`${at}vmConfig.env[]`]: { required: ["name"] },
  [`${at}vmConfig.env[].name`]: { minLength: 1, maxLength: LONGEST_NAME },
  [`${at}vmConfig.env[].value`]: { maxLength: LONGEST_VALUE },
});

/** A WebAssembly module: where it comes from and what it may see. */
export function checkWasm(wasm: Pick<WasmConfig, "url" | "sha256" | "imagePullSecret" | "pluginName" | "vmConfig">, place: Place): void {
  place.in("url").check("field.invalid", urlFault(wasm.url));
  if (wasm.sha256 !== "" && !SHA256.test(wasm.sha256))
    place.in("sha256").fault("field.invalid", "must be 64 hexadecimal digits in lower case");
  if (wasm.imagePullSecret.length > LONGEST_SECRET)
    place.in("imagePullSecret").fault("field.invalid", `must have at most ${LONGEST_SECRET} characters`);
  if (wasm.pluginName.length > LONGEST_NAME) place.in("pluginName").fault("field.invalid", `must have at most ${LONGEST_NAME} characters`);
  if (wasm.vmConfig !== undefined) checkEnvironment(wasm.vmConfig, place.in("vmConfig", "env"));
}

/** Ports a filter is limited to. */
export function checkPorts(matches: readonly { readonly ports: readonly { readonly number: number }[] }[], place: Place): void {
  for (const [index, match] of matches.entries()) {
    for (const [at, port] of match.ports.entries()) place.in(index, "ports", at, "number").check("field.port", portFault(port.number));
  }
}

function urlFault(url: string): string | undefined {
  if (url === "") return "must be set";
  if (/[\s\p{Cc}]|%(?![0-9A-Fa-f]{2})/u.test(url)) return `${quote(url)} is not a URL`;
  const scheme = /^([a-zA-Z][-+.a-zA-Z0-9]*):\/\//.exec(url)?.[1] ?? "";
  if (scheme === "" && !UNSCHEMED.test(url)) return `${quote(url)} is neither a URL nor an image such as registry.example/module:tag`;
  return SCHEMES.has(scheme.toLowerCase()) ? undefined : `${quote(url)} must be an http, https, file or oci URL`;
}

function checkEnvironment(vm: VmConfig, place: Place): void {
  const names = new Set<string>();
  for (const [index, variable] of vm.env.entries()) {
    const at = place.in(index);
    if (variable.name === "") at.in("name").fault("field.required", "must be set");
    else if (names.has(variable.name)) at.in("name").fault("field.duplicate", `${quote(variable.name)} is listed twice`);
    names.add(variable.name);
    if (variable.valueFrom === EnvValueSource.HOST && variable.value !== "")
      at.in("value").fault("field.conflict", "a variable taken from the host has no value here");
    if (variable.value.length > LONGEST_VALUE) at.in("value").fault("field.invalid", `must have at most ${LONGEST_VALUE} characters`);
  }
}
