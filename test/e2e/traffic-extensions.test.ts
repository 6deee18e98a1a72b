import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { call } from "../support/calls.ts";
import { tempDir } from "../support/cleanup.ts";
import { httpEcho } from "../support/echo.ts";
import { startServiceMesh } from "../support/service-mesh.ts";
import { eventually, says } from "../support/wait.ts";
import { headerModule } from "../support/wasm-module.ts";

const extension = (kind: "TrafficExtension" | "WasmPlugin", name: string, spec: string): string => `
---
apiVersion: extensions.istio.io/v1alpha1
kind: ${kind}
metadata: {name: ${name}, namespace: shop}
spec: {selector: {matchLabels: {app: client}}, ${spec}}
`;

const lua = (name: string, rest = ""): string =>
  extension(
    "TrafficExtension",
    name,
    `${rest} lua: {inlineCode: 'function envoy_on_request(handle) handle:headers():add("x-order", "${name}") end'}`,
  );

describe("TrafficExtensions in Lua", () => {
  it("change requests in the order of phases and priorities, on the ports and in the direction they name", async () => {
    const server = await httpEcho("server");
    const mesh = await startServiceMesh({
      backends: [server],
      config: [
        lua("last"),
        lua("low", "phase: AUTHZ, priority: 1,"),
        lua("high", "phase: AUTHZ, priority: 10,"),
        lua("first", "phase: AUTHN,"),
        lua("elsewhere", "match: [{ports: [{number: 1}]}],"),
        lua("inbound", "match: [{mode: SERVER}],"),
      ].join(""),
      proxy: { labels: { app: "client" } },
    });
    await call(mesh.target);
    expect(server.hits[0]?.headers["x-order"]).toBe("first, high, low, last");
    await mesh.istiod.write("conf/more.yaml", lua("alone"));
    await eventually("only one is left", async () => {
      await call(mesh.target);
      return server.hits.at(-1)?.headers["x-order"] === "alone";
    });
    await mesh.proxy.assertNothingRejected();
  });

  it("that are not written in Lua never reach Envoy, and the last good version stays", async () => {
    const server = await httpEcho("server");
    const broken = extension("TrafficExtension", "good", "lua: {inlineCode: 'function ('}");
    const mesh = await startServiceMesh({ backends: [server], config: lua("good"), proxy: { labels: { app: "client" } } });
    await mesh.istiod.write("conf/more.yaml", broken);
    await says(mesh.istiod, /TrafficExtension.*is not a script in Lua/);
    expect((await call(mesh.target)).status).toBe(200);
    expect(server.hits.at(-1)?.headers["x-order"]).toBe("good");
    await mesh.proxy.assertNothingRejected();
  });

  it("that fail when Envoy loads them are refused by it, named, and cost the others nothing", async () => {
    const server = await httpEcho("server");
    const broken = extension("TrafficExtension", "broken", "lua: {inlineCode: 'error(1)'}");
    const mesh = await startServiceMesh({ backends: [server], config: lua("good"), proxy: { labels: { app: "client" } } });
    await mesh.istiod.write("conf/broken.yaml", broken);
    await eventually("it is reported", () => /rejected configuration.*TrafficExtension\/shop\/broken/.test(mesh.istiod.log()));
    expect((await call(mesh.target)).status).toBe(200);
    expect(server.hits.at(-1)?.headers["x-order"]).toBe("good");
  });
});

describe("Wasm", () => {
  it("modules of local files run, for WasmPlugins and TrafficExtensions, and follow their objects", async () => {
    const dir = await tempDir();
    const [one, other] = [join(dir, "one.wasm"), join(dir, "other.wasm")];
    await writeFile(one, headerModule("x-module", "one"));
    await writeFile(other, headerModule("x-module", "other"));
    const server = await httpEcho("server");
    const plugin = (file: string): string =>
      extension("WasmPlugin", "plugin", `url: "file://${file}", pluginConfig: {any: thing}, phase: STATS`);
    const mesh = await startServiceMesh({ backends: [server], config: plugin(one), proxy: { labels: { app: "client" } } });
    await eventually("the module runs", async () => {
      await call(mesh.target);
      return server.hits.at(-1)?.headers["x-module"] === "one";
    });
    await mesh.istiod.write("conf/more.yaml", plugin(other));
    await eventually("the other module runs", async () => {
      await call(mesh.target);
      return server.hits.at(-1)?.headers["x-module"] === "other";
    });
    await mesh.istiod.write("conf/more.yaml", plugin(other) + extension("TrafficExtension", "extension", `wasm: {url: "file://${one}"}`));
    await eventually("both run", async () => {
      await call(mesh.target);
      return server.hits.at(-1)?.headers["x-module"] === "other, one";
    });
    await mesh.istiod.write("conf/more.yaml", "");
    await eventually("none runs", async () => {
      await call(mesh.target);
      return server.hits.at(-1)?.headers["x-module"] === undefined;
    });
    await mesh.proxy.assertNothingRejected();
  });

  it("modules that nobody fetches let all pass or nothing, as they say themselves", async () => {
    const server = await httpEcho("server");
    const far = (failStrategy: string): string =>
      extension("WasmPlugin", "far", `url: "https://files.test/far.wasm", failStrategy: ${failStrategy}`);
    const mesh = await startServiceMesh({ backends: [server], config: far("FAIL_OPEN"), proxy: { labels: { app: "client" } } });
    await eventually("all pass", async () => (await call(mesh.target)).status === 200);
    await mesh.istiod.write("conf/more.yaml", far("FAIL_CLOSE"));
    await eventually("nothing passes", async () => (await call(mesh.target)).status === 403);
    await mesh.proxy.assertNothingRejected();
  });
});
