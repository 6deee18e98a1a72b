import type { Message } from "@bufbuild/protobuf";
import type { DataSource } from "../../../gen/envoy/config/core/v3/base_pb.js";
import type { Lua, LuaPerRoute } from "../../../gen/envoy/extensions/filters/http/lua/v3/lua_pb.js";
import type { LuaConfig } from "../../../gen/envoy/extensions/router/cluster_specifiers/lua/v3/lua_pb.js";
import type { Lua as LuaMatcher } from "../../../gen/envoy/extensions/string_matcher/lua/v3/lua_pb.js";
import type { FieldPath } from "../../problem.ts";
import { luaFault } from "./syntax.ts";

/** A script that Envoy would refuse, and where in a message it stands. */
export interface ScriptFault {
  readonly path: FieldPath;
  readonly reason: string;
}

interface Script {
  readonly path: FieldPath;
  readonly source: string;
}

/** What is wrong with the scripts of a message of Envoy's: nothing, where it is of a type that has none. Those in files are the proxy's to read. */
export function scriptFaults(message: Message): readonly ScriptFault[] {
  return scriptsOf(message as Lua | LuaPerRoute | LuaConfig | LuaMatcher).flatMap(({ path, source }) => {
    const reason = scriptFault(source);
    return reason === undefined ? [] : [{ path, reason }];
  });
}

/** What is wrong with a script, for whoever wrote it. */
export function scriptFault(source: string): string | undefined {
  const fault = luaFault(source);
  return fault === undefined ? undefined : `is not a script in Lua that Envoy takes: line ${fault.line}: ${fault.reason}`;
}

function scriptsOf(message: Lua | LuaPerRoute | LuaConfig | LuaMatcher): readonly Script[] {
  switch (message.$typeName) {
    case "envoy.extensions.filters.http.lua.v3.Lua":
      return filterScripts(message);
    case "envoy.extensions.filters.http.lua.v3.LuaPerRoute":
      return message.override.case === "sourceCode" ? inlineScript(["source_code"], message.override.value) : [];
    case "envoy.extensions.router.cluster_specifiers.lua.v3.LuaConfig":
    case "envoy.extensions.string_matcher.lua.v3.Lua":
      return inlineScript(["source_code"], message.sourceCode);
    default:
      return [];
  }
}

const filterScripts = ({ inlineCode, defaultSourceCode, sourceCodes }: Lua): readonly Script[] => [
  { path: ["inline_code"], source: inlineCode },
  ...inlineScript(["default_source_code"], defaultSourceCode),
  ...Object.entries(sourceCodes).flatMap(([name, code]) => inlineScript(["source_codes", name], code)),
];

function inlineScript(path: FieldPath, source: DataSource | undefined): readonly Script[] {
  const specifier = source?.specifier;
  if (specifier?.case === "inlineString") return [{ path: [...path, "inline_string"], source: specifier.value }];
  if (specifier?.case === "inlineBytes") return [{ path: [...path, "inline_bytes"], source: Buffer.from(specifier.value).toString() }];
  return [];
}
