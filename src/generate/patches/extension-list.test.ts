import assert from "node:assert/strict";
import { create } from "@bufbuild/protobuf";
import { describe, it } from "vitest";
import { NodeSchema } from "../../gen/envoy/config/core/v3/base_pb.js";
import { extensionListOf, hasExtension } from "./extension-list.ts";

const LUA = "envoy.extensions.filters.http.lua.v3.Lua";
const TLS = "envoy.extensions.transport_sockets.tls.v3";

const list = extensionListOf(
  create(NodeSchema, {
    extensions: [
      { category: "envoy.filters.http", typeUrls: [LUA] },
      { category: "envoy.filters.http.upstream", typeUrls: ["envoy.extensions.filters.http.upstream_codec.v3.UpstreamCodec"] },
      { category: "envoy.transport_sockets.upstream", typeUrls: [`${TLS}.UpstreamTlsContext`] },
    ],
  }),
);

describe("hasExtension", () => {
  const table: readonly [title: string, type: string, kind: string | undefined, want: boolean][] = [
    ["a filter of its kind", LUA, "envoy.filters.http", true],
    ["a kind with a longer name", "envoy.extensions.filters.http.upstream_codec.v3.UpstreamCodec", "envoy.filters.http", true],
    ["no extension of another kind", LUA, "envoy.filters.network", false],
    ["no message of an extension in the place of the extension", `${TLS}.TlsParameters`, "envoy.transport_sockets", false],
    ["no misspelt type", "envoy.extensions.filters.http.lua.v3.LuaFilter", "envoy.filters.http", false],
    ["a message of an extension where any may stand", `${TLS}.TlsParameters`, undefined, true],
    ["no message of an unknown package", "stats.PluginConfig", undefined, false],
    ["messages that are no extension's", "envoy.config.core.v3.Metadata", "envoy.filters.http", true],
  ];
  for (const [title, type, kind, want] of table) {
    it(`knows ${title}`, () => assert.equal(hasExtension(list, { type, kind }), want));
  }

  it("believes in upstream's packages where an Envoy says nothing", () => {
    assert.equal(hasExtension(undefined, { type: LUA, kind: "envoy.filters.network" }), true);
    assert.equal(hasExtension(undefined, { type: "stats.PluginConfig", kind: undefined }), false);
  });
});
