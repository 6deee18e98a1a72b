import { join } from "node:path";
import { EdgeError } from "../../base/errors.ts";
import { isOn } from "../../base/go-bool.ts";
import { bodyOfResource } from "../../wire/delta-frames.ts";
import { NAME_TABLE_TYPE } from "../../wire/type-urls.ts";
import { bootstrapFile } from "../bootstrap/bootstrap-file.ts";
import type { AgentContext, AgentPart } from "../parts.ts";
import { Histogram } from "../status/histogram.ts";
import { startDnsServer } from "./dns-server.ts";
import { buildLookup, domainOf, type NameLookup, type NamePlace, readNameTable } from "./name-table.ts";
import { type ResolvConf, readResolvConf } from "./resolv-conf.ts";
import { createResolver, type DnsCounts } from "./resolver.ts";
import { createUpstream, type Upstream } from "./upstream.ts";

const DNS_SERVER_PORT = 53;
const MOST_QUESTIONS = 512;
const REREAD_MS = 5_000;
/** Seconds, as Istio counts them. */
const DURATION_BOUNDS = [0.001, 0.005, 0.01, 0.1, 1, 5];

/** Answers for names on 15053, where that is asked for. */
export const dnsProxy: AgentPart = async (context) => {
  const { config, node, clock, log, signal, checks, metrics } = context;
  if (!isAsked(context)) return;
  const { addresses, port } = listenAddress(config.settings.dnsAddress);
  const resolvConf = await resolvConfOf(context, port);
  const lookup = await followNames(context, {
    namespace: config.settings.podNamespace,
    domain: domainOf(node.id, config.settings.podNamespace),
    search: (await resolvConf()).search[0] ?? "",
  });
  const counts: DnsCounts = { requests: 0, forwarded: 0, failed: 0 };
  const durations = new Histogram(DURATION_BOUNDS);
  const asked = createUpstream({
    servers: async () => (await resolvConf()).servers.map((address) => ({ address, port: DNS_SERVER_PORT })),
    clock,
    timeoutMs: config.settings.dnsTimeoutMs,
    parallel: config.settings.dnsParallel,
    atMost: MOST_QUESTIONS,
  });
  const upstream: Upstream = {
    async ask(query, transport) {
      const began = clock.monotonic();
      const answer = await asked.ask(query, transport);
      durations.observe((clock.monotonic() - began) / 1_000);
      return answer;
    },
  };
  const resolve = createResolver({ lookup, upstream, counts, random: Math.random });
  const server = await startDnsServer({ addresses, port, resolve, log });
  signal.addEventListener("abort", () => server.close(), { once: true });
  checks.push(() => (lookup() === undefined ? "the names of the mesh have not come" : undefined));
  metrics.push(
    { name: "dns_requests_total", type: "counter", values: () => [{ value: counts.requests }] },
    { name: "dns_upstream_requests_total", type: "counter", values: () => [{ value: counts.forwarded }] },
    { name: "dns_upstream_failures_total", type: "counter", values: () => [{ value: counts.failed }] },
    durations.metric("dns_upstream_request_duration_seconds"),
  );
};

/** Capture of a sidecar's questions, or a server for whoever asks it: gateways capture nothing, but their Envoy may (dynamic forward proxies). */
function isAsked({ config, node }: Pick<AgentContext, "config" | "node">): boolean {
  const says = (name: "DNS_CAPTURE" | "ENABLE_DNS_SERVER"): boolean => isOn(String(node.metadata[name] ?? ""));
  return (config.type === "sidecar" && says("DNS_CAPTURE")) || says("ENABLE_DNS_SERVER");
}

/**
 * The names of the moment. The table comes with the configuration and is kept on disk, so that names of the mesh are known after a restart without a
 * control plane too.
 */
async function followNames({ config, log, subscriptions, routes }: AgentContext, place: NamePlace): Promise<() => NameLookup | undefined> {
  const kept = bootstrapFile(join(config.paths.lastGood, "names.pb"));
  let lookup: NameLookup | undefined;
  let table: Uint8Array = new Uint8Array();
  const take = (bytes: Uint8Array): void => {
    lookup = buildLookup(readNameTable(bytes), place);
    table = bytes;
  };
  const earlier = await kept.read();
  try {
    if (earlier !== undefined) take(earlier);
  } catch {
    log.warn("the names kept on disk cannot be read");
  }
  subscriptions.push({
    typeUrl: NAME_TABLE_TYPE,
    names: [],
    taken({ resources: [resource] }) {
      if (resource === undefined) return;
      take(Buffer.from(bodyOfResource(resource.bytes)));
      void kept.write(table);
    },
  });
  routes.push({
    path: "/debug/ndsz",
    local: true,
    handle(_, response) {
      const entries = readNameTable(table).map(({ host, ...info }) => [host, info]);
      const text = JSON.stringify({ table: Object.fromEntries(entries) }, null, 2);
      response.writeHead(200, { "content-type": "application/json" }).end(`${text}\n`);
    },
  });
  return () => lookup;
}

/** `localhost` means loopback of both families, and no host at all every address of the machine. */
function listenAddress(text: string): { readonly addresses: readonly string[]; readonly port: number } {
  const [, v6, host = "", port = ""] = /^(?:\[([0-9a-fA-F:]+)\]|([^:]*)):(\d{1,5})$/.exec(text) ?? [];
  if (port === "")
    throw new EdgeError("usage", `DNS_PROXY_ADDR: ${JSON.stringify(text)} is no address`, { hint: "it has the form localhost:15053" });
  const both = host === "" ? ["0.0.0.0", "::"] : ["127.0.0.1", "::1"];
  return { addresses: v6 !== undefined ? [v6] : host === "localhost" || host === "" ? both : [host], port: Number(port) };
}

/** The machine's file, read again when it may have changed. An agent that is the machine's server itself (port 53) asks those in a file of its own. */
async function resolvConfOf({ config, clock }: AgentContext, port: number): Promise<() => Promise<ResolvConf>> {
  const own = join(config.baseDir, "var/lib/istio/resolv.conf");
  const hasOwn = port === DNS_SERVER_PORT && (await readResolvConf(own)).servers.length > 0;
  const file = hasOwn ? own : "/etc/resolv.conf";
  let latest = readResolvConf(file);
  let at = clock.monotonic();
  return () => {
    if (clock.monotonic() - at > REREAD_MS) {
      at = clock.monotonic();
      latest = readResolvConf(file);
    }
    return latest;
  };
}
