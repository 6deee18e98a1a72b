import { spawn } from "node:child_process";
import { mkdtemp, open, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { findEnvoy } from "../../src/agent/find-envoy.ts";
import { eventually } from "./wait.ts";

/** What a real Envoy says against each of some Lua sources; undefined where it takes one. One process: a listener for each, by discovery from a file. */
export async function luaVerdicts(sources: readonly string[]): Promise<readonly (string | undefined)[]> {
  const dir = await mkdtemp(join(tmpdir(), "envoy-lua-"));
  const at = (name: string): string => join(dir, name);
  await writeFile(at("lds.json"), JSON.stringify({ resources: sources.map(listener) }));
  await writeFile(at("bootstrap.json"), JSON.stringify(bootstrap(at("lds.json"))));
  const output = await open(at("log"), "a");
  const args = [
    "-c",
    at("bootstrap.json"),
    "-l",
    "error",
    "--admin-address-path",
    at("admin"),
    "--use-dynamic-base-id",
    "--concurrency",
    "1",
  ];
  const child = spawn(findEnvoy(process.env), args, { stdio: ["ignore", output.fd, output.fd] });
  try {
    await eventually("Envoy has an admin address", async () => (await readFile(at("admin"), "utf8").catch(() => "")) !== "");
    const admin = `http://${await readFile(at("admin"), "utf8")}`;
    const verdicts = await eventually("all listeners are judged", async () => {
      const found = await judged(admin);
      return sources.every((_, index) => found.has(nameOf(index))) && found;
    });
    return sources.map((_, index) => verdicts.get(nameOf(index)));
  } finally {
    child.kill("SIGKILL");
    await output.close();
    await rm(dir, { recursive: true, force: true });
  }
}

const nameOf = (index: number): string => `lua-${index}`;

interface DumpedListener {
  readonly name: string;
  readonly error_state?: { readonly details: string };
}

async function judged(admin: string): Promise<ReadonlyMap<string, string | undefined>> {
  const response = await fetch(`${admin}/config_dump?resource=dynamic_listeners`);
  const { configs = [] } = (await response.json()) as { readonly configs?: readonly DumpedListener[] };
  return new Map(configs.map(({ name, error_state }) => [name, error_state?.details]));
}

const bootstrap = (file: string) => ({
  node: { id: "lua", cluster: "lua" },
  admin: { address: { socket_address: { address: "127.0.0.1", port_value: 0 } } },
  dynamic_resources: { lds_config: { path_config_source: { path: file }, resource_api_version: "V3" } },
});

const T = "type.googleapis.com/envoy";

const listener = (source: string, index: number) => ({
  "@type": `${T}.config.listener.v3.Listener`,
  name: nameOf(index),
  bind_to_port: false,
  address: { socket_address: { address: `127.1.${index >> 8}.${index & 255}`, port_value: 15_000 } },
  filter_chains: [{ filters: [manager(source)] }],
});

const manager = (source: string) => ({
  name: "http",
  typed_config: {
    "@type": `${T}.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager`,
    stat_prefix: "lua",
    route_config: {},
    http_filters: [
      {
        name: "lua",
        typed_config: { "@type": `${T}.extensions.filters.http.lua.v3.Lua`, default_source_code: { inline_string: source } },
      },
      { name: "router", typed_config: { "@type": `${T}.extensions.filters.http.router.v3.Router` } },
    ],
  },
});
