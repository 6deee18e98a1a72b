import { existsSync, readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { AGENT_SETTINGS } from "./agent-table.ts";
import { ignoredAgentVariables } from "./ignored-agent-variables.ts";
import { unknownSettings } from "./read-settings.ts";

const FEATURES = "../shared/conformance/features/env.json";

describe("variables of Istio's agent that are not honoured", () => {
  it("are named where they would change something", () => {
    const env = { CA_PROVIDER: "GoogleCAS", JWT_POLICY: "third-party-jwt", GCP_ZONE: "", WASM_HTTP_REQUEST_TIMEOUT: "15s", HOME: "/" };
    expect(ignoredAgentVariables(env)).toEqual(["CA_PROVIDER", "WASM_HTTP_REQUEST_TIMEOUT"]);
  });

  it("are none that are", () => {
    const own = Object.fromEntries(Object.values(AGENT_SETTINGS).map(({ env }) => [env, "something"]));
    expect(ignoredAgentVariables(own)).toEqual([]);
  });

  it.skipIf(!existsSync(FEATURES))("are all that there are", () => {
    const all = JSON.parse(readFileSync(FEATURES, "utf8")) as readonly { readonly name: string; readonly components: readonly string[] }[];
    const honoured = new Set<string>(Object.values(AGENT_SETTINGS).map(({ env }) => env));
    const left = all.filter(
      ({ name, components }) => components.includes("agent") && !honoured.has(name) && !name.startsWith("ISTIO_META_"),
    );
    const env = Object.fromEntries(left.map(({ name }) => [name, "something"]));
    const named = new Set([...ignoredAgentVariables(env), ...unknownSettings(env)]);
    expect(left.map(({ name }) => name).filter((name) => !named.has(name) && !name.startsWith("KUBERNETES_"))).toEqual([]);
  });
});
