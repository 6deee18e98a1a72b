import { describe, expect, it } from "vitest";
import { type AgentMesh, startAgentMesh } from "../support/agent-mesh.ts";
import { call } from "../support/calls.ts";
import { artifactLayer, imageLayer, ociRegistry } from "../support/oci-registry.ts";
import { eventually, says } from "../support/wait.ts";
import { headerModule } from "../support/wasm-module.ts";

const LOGIN = { user: "ann", password: "pull-me" };
const FILE = "conf/wasm.yaml";

const plugin = (name: string, spec: string): string => `
apiVersion: extensions.istio.io/v1alpha1
kind: WasmPlugin
metadata: {name: ${name}, namespace: shop}
spec: {selector: {matchLabels: {app: cart}}, ${spec}}
---`;

const secret = (host: string): string => `
apiVersion: v1
kind: Secret
type: kubernetes.io/dockerconfigjson
metadata: {name: pull, namespace: shop}
stringData: {".dockerconfigjson": '${JSON.stringify({ auths: { [host]: { username: LOGIN.user, password: LOGIN.password } } })}'}
---`;

const agentMetric = async ({ server }: AgentMesh, name: string): Promise<number> => {
  const text = await (await fetch(`http://127.0.0.1:${server.statusPort}/metrics`)).text();
  return Number(
    text
      .split("\n")
      .find((line) => line.startsWith(`istio_agent_${name} `))
      ?.split(" ")[1] ?? 0,
  );
};

describe("Wasm modules of a registry", () => {
  it("run in Envoy; one that cannot be had lets all through or nothing, until it comes", async () => {
    const registry = await ociRegistry({ login: LOGIN });
    const digest = registry.push("mesh/header", "v1", imageLayer(headerModule("x-wasm", "one")));
    const env = { WASM_INSECURE_REGISTRIES: registry.host, WASM_HTTP_REQUEST_MAX_RETRIES: "1" };
    const mesh = await startAgentMesh({ agents: { env } });
    const header = async (): Promise<string> => {
      const answer = await call(mesh.target);
      if (answer.status !== 200) return `status ${answer.status}`;
      return String((JSON.parse(answer.body) as { readonly headers: Readonly<Record<string, string>> }).headers["x-wasm"] ?? "none");
    };
    const becomes = (what: string): Promise<boolean> => eventually(`the answer is ${what}`, async () => (await header()) === what);
    const url = `url: "oci://${registry.host}/mesh/header:v1"`;
    expect(await header()).toBe("none");

    // No secret yet: nothing may pass.
    await mesh.istiod.write(FILE, plugin("header", `${url}, imagePullSecret: pull`));
    await becomes("status 403");
    await says(mesh.server, "its image pull secret is not there");
    await mesh.istiod.write(FILE, secret(registry.host) + plugin("header", `${url}, imagePullSecret: pull`));
    await becomes("one");
    const pages = ["/debug/config_dump?proxyID=cart.shop", "/debug/ecdsz?proxyID=cart.shop", "/debug/configz"];
    const dumps = await Promise.all(pages.map(async (page) => (await mesh.istiod.debug(page)).text()));
    const seen = [...dumps, await mesh.server.admin("/config_dump"), mesh.server.log(), mesh.istiod.log()];
    for (const text of seen) expect(text).not.toContain(LOGIN.password);

    // A wrong digest is refused, with and without a word on failures.
    const wrong = `sha256: "${"0".repeat(64)}"`;
    await mesh.istiod.write(FILE, secret(registry.host) + plugin("header", `${url}, imagePullSecret: pull, ${wrong}`));
    await becomes("status 403");
    await mesh.istiod.write(
      FILE,
      secret(registry.host) + plugin("header", `${url}, imagePullSecret: pull, ${wrong}, failStrategy: FAIL_OPEN`),
    );
    await becomes("none");

    // By digest it is on disk already: the registry, which could not answer, is not asked. What was wrong is asked for again until this is in force.
    registry.fail(503);
    const pinned = `sha256: "${digest.slice("sha256:".length)}"`;
    await mesh.istiod.write(FILE, secret(registry.host) + plugin("header", `${url}, imagePullSecret: pull, ${pinned}`));
    await becomes("one");
    const asked = registry.asked.length;
    const found = (): Promise<number> => agentMetric(mesh, 'wasm_cache_lookup_count{hit="true"}');
    const before = await found();
    await mesh.istiod.write(
      FILE,
      secret(registry.host) + plugin("header", `${url}, imagePullSecret: pull, ${pinned}, pluginConfig: {any: thing}`),
    );
    await eventually("it is found again", async () => (await found()) > before);
    expect(registry.asked.length).toBe(asked);
    expect(await header()).toBe("one");

    // A registry that is away for a while costs a while.
    registry.push("mesh/header", "v2", artifactLayer(headerModule("x-wasm", "two")));
    await mesh.istiod.write(FILE, secret(registry.host) + plugin("header", `${url.replace(":v1", ":v2")}, imagePullSecret: pull`));
    await becomes("status 403");
    registry.fail(0);
    await becomes("two");
    expect(await agentMetric(mesh, 'wasm_remote_fetch_count{result="success"}')).toBe(2);
    expect(await agentMetric(mesh, 'wasm_remote_fetch_count{result="checksum_mismatched"}')).toBeGreaterThan(1);
    expect(await mesh.server.stat("extension_config_discovery.http_filter.extensions.istio.io/wasmplugin/shop.header.config_fail")).toBe(0);

    // An Envoy that starts again without a registry and without istiod has what it had.
    registry.fail(503);
    await mesh.istiod.stop();
    const pid = await mesh.server.envoyPid();
    process.kill(pid, "SIGKILL");
    await eventually("Envoy is another", async () => (await mesh.server.envoyPid()) !== pid);
    await becomes("two");
  });
});
