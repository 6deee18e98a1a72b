import { describe, expect, it } from "vitest";
import { listAt, textAt } from "../../src/cli/json-path.ts";
import type { ConfigDump, DumpedRouteTable } from "../../src/debug/api-types.ts";
import { ROUTE_TYPE } from "../../src/wire/type-urls.ts";
import { call } from "../support/calls.ts";
import { httpEcho } from "../support/echo.ts";
import { type Istiod, startIstiod } from "../support/istiod.ts";
import { freePort } from "../support/ports.ts";
import { listening, type ProxyOptions, type RunningProxy, startProxy } from "../support/proxy.ts";
import { type Relay, startRelay } from "../support/relay.ts";
import { inStep, syncz } from "../support/sync.ts";
import { keepCalling } from "../support/traffic.ts";
import { eventually } from "../support/wait.ts";

const service = (name: string, port: number, server: number): string => `
apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: {name: ${name}, namespace: shop}
spec:
  hosts: [${name}.test]
  location: MESH_INTERNAL
  resolution: STATIC
  ports: [{number: ${port}, name: http, protocol: HTTP}]
  endpoints: [{address: 127.0.0.1, ports: {http: ${server}}}]
`;

/** Sends calls for one service to another, and says so in a header. */
const detour = (from: string, to: string, mark: string): string => `
apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: {name: ${from}, namespace: shop}
spec:
  hosts: [${from}.test]
  http: [{headers: {response: {set: {x-mark: ${mark}}}}, route: [{destination: {host: ${to}.test}}]}]
`;

/** A route with an expression that no compiler takes, put before those of one host. */
const brokenPatch = (port: number): string => `
apiVersion: networking.istio.io/v1alpha3
kind: EnvoyFilter
metadata: {name: broken, namespace: shop}
spec:
  configPatches:
  - applyTo: HTTP_ROUTE
    match: {context: SIDECAR_OUTBOUND, routeConfiguration: {vhost: {name: "a.test:${port}"}}}
    patch: {operation: INSERT_FIRST, value: {match: {safe_regex: {regex: "/(unclosed"}}, direct_response: {status: 204}}}
`;

interface HostsMesh {
  readonly istiod: Istiod;
  /** The wire between the two. */
  readonly relay: Relay;
  readonly proxy: RunningProxy;
  /** Starts the proxy once more, with nothing of what it knew. */
  startAgain(): Promise<RunningProxy>;
  readonly port: number;
  readonly servers: { readonly one: number; readonly two: number };
  /** Who answers for a host, and what its route says. */
  answer(name: string, port?: number): Promise<string>;
  /** Responses sent since the start of istiod, by type. */
  sent(type: "rds" | "vhds"): Promise<number>;
}

/** Services `one`, `two` and `a` on one port, and a client's sidecar that takes their virtual hosts one by one. */
async function startHosts(options: Partial<ProxyOptions> = {}, prepare: (relay: Relay) => void = () => {}): Promise<HostsMesh> {
  const [one, two] = [await httpEcho("one"), await httpEcho("two")];
  const port = await freePort();
  const files = {
    "conf/one.yaml": service("one", port, one.port),
    "conf/two.yaml": service("two", port, two.port),
    "conf/a.yaml": service("a", port, one.port),
  };
  const istiod = await startIstiod({ files });
  const relay = await startRelay({ to: istiod.grpcPort });
  prepare(relay);
  const startAgain = async (): Promise<RunningProxy> => {
    const proxy = await startProxy({ xdsPort: relay.port, name: "client", address: "127.0.0.9", metadata: { VHDS: "true" }, ...options });
    await listening(port);
    return proxy;
  };
  return {
    istiod,
    relay,
    proxy: await startAgain(),
    startAgain,
    port,
    servers: { one: one.port, two: two.port },
    async answer(name, at = port) {
      const { by, status, headers } = await call({ port: at, host: `${name}.test` });
      return [by || `status ${status}`, headers["x-mark"]].filter((part) => part !== undefined).join(" ");
    },
    sent: (type) => istiod.metric("pilot_xds_pushes", `type="${type}"`),
  };
}

interface Shown {
  readonly host: string;
  readonly answers: string;
  readonly port?: number;
}

const shows = (what: string, { answer }: HostsMesh, { host, answers, port }: Shown): Promise<unknown> =>
  eventually(what, async () => (await answer(host, port)) === answers);

/** Names of the virtual hosts inside a table, as istiod says the proxy holds them, and those that are resources of their own. */
async function hostsOf(mesh: HostsMesh): Promise<{ readonly inline: readonly string[]; readonly discovered: readonly string[] }> {
  const table = await tableOf(mesh);
  const discovered = table?.discoveredHosts?.map(({ name }) => name) ?? [];
  const all = table === undefined ? [] : listAt(table.routeConfig, "virtualHosts").map((host) => textAt(host, "name"));
  return { inline: all.filter((name) => !discovered.includes(name)), discovered: all.filter((name) => discovered.includes(name)) };
}

/** The table of the port, as istiod says the proxy holds it. */
async function tableOf({ istiod, port }: HostsMesh, more = ""): Promise<DumpedRouteTable | undefined> {
  const { configs } = (await (await istiod.debug(`/debug/config_dump?proxyID=client.shop${more}`)).json()) as ConfigDump;
  const tables = configs.flatMap((part) => ("dynamicRouteConfigs" in part ? (part.dynamicRouteConfigs ?? []) : []));
  return tables.find(({ routeConfig }) => textAt(routeConfig, "name") === String(port));
}

/** Resolves when the proxy has asked for virtual hosts and all other types, and has all it asked for. */
const hostsInStep = (istiod: Istiod): Promise<unknown> =>
  eventually("virtual hosts are in step", async () =>
    (await inStep(istiod, "client.shop")).types.some(({ type, state }) => type === "VHDS" && state === "SYNCED"),
  );

describe("virtual hosts that are sent one by one", () => {
  it("are added, changed and removed while their table stays as it is and calls go on", async () => {
    const mesh = await startHosts();
    const { istiod, port, servers, sent } = mesh;
    expect(await mesh.answer("a")).toBe("one");
    await hostsInStep(istiod);
    expect(await hostsOf(mesh)).toEqual({
      inline: ["allow_any"],
      discovered: [`${port}/a.test:${port}`, `${port}/one.test:${port}`, `${port}/two.test:${port}`],
    });
    const tables = await sent("rds");
    const before = await sent("vhds");
    const traffic = keepCalling({ port, host: "two.test" });

    await istiod.write("conf/a-routes.yaml", detour("a", "two", "first"));
    await shows("a change", mesh, { host: "a", answers: "two first" });
    const explained = (await tableOf(mesh, "&why"))?.discoveredHosts?.find(({ name }) => name === `${port}/a.test:${port}`);
    expect(explained?.why?.map(({ object }) => object)).toEqual(["ServiceEntry/shop/a", "VirtualService/shop/a"]);
    await istiod.write("conf/a-routes.yaml", detour("a", "one", "second"));
    await shows("another", mesh, { host: "a", answers: "one second" });
    await istiod.remove("conf/a-routes.yaml");
    await shows("no rules", mesh, { host: "a", answers: "one" });
    expect(await sent("vhds")).toBe(before + 3);
    await istiod.write("conf/b.yaml", service("b", port, servers.two));
    await shows("a host more", mesh, { host: "b", answers: "two" });
    await istiod.remove("conf/b.yaml");
    await eventually("a host less", async () => (await mesh.answer("b")) !== "two");
    expect(await sent("rds")).toBe(tables);
    await traffic.more(20);
    expect(await traffic.stop()).toEqual([]);
    await mesh.proxy.assertNothingRejected();
  });

  it("come with tables that are asked for late, and again after those were away", async () => {
    const mesh = await startHosts();
    const late = await freePort();
    for (const mark of ["first", "second"]) {
      await mesh.istiod.write("conf/late.yaml", `${service("late", late, mesh.servers.two)}---${detour("late", "late", mark)}`);
      await listening(late);
      await shows("the late table", mesh, { host: "late", answers: `two ${mark}`, port: late });
      await mesh.istiod.remove("conf/late.yaml");
      await eventually("the listener is gone", async () => !(await mesh.proxy.admin("/listeners")).includes(String(late)));
    }
    expect(await mesh.answer("a")).toBe("one");
    await mesh.proxy.assertNothingRejected();
  });

  it("come where the wire was cut between a table and its hosts", async () => {
    let cut: Promise<void> | undefined;
    const mesh = await startHosts({}, (relay) => {
      cut = relay.cutAfter(ROUTE_TYPE);
    });
    await cut;
    expect(await mesh.answer("a")).toBe("one");
    await eventually("no listener waits", async () => (await mesh.proxy.stat("listener_manager.total_listeners_warming")) === 0);
  });

  it("are not sent again after a restart of the control plane, but what changed meanwhile is", async () => {
    const mesh = await startHosts();
    const { istiod, relay } = mesh;
    await hostsInStep(istiod);
    await istiod.stop("SIGKILL");
    await istiod.write("conf/a-routes.yaml", detour("a", "two", "away"));
    expect(await mesh.answer("a")).toBe("one");
    await istiod.start();
    await shows("the change", mesh, { host: "a", answers: "two away" });
    expect(await mesh.sent("vhds")).toBe(1);
    expect(await istiod.metric("pilot_xds_pushes")).toBe(1);

    const [client] = await syncz(istiod);
    relay.pointAt(istiod.grpcPort);
    await eventually("Envoy connects anew", async () => (await syncz(istiod)).some((one) => one.connection_id !== client?.connection_id));
    await hostsInStep(istiod);
    expect(await istiod.metric("pilot_xds_pushes")).toBe(1);
    await istiod.write("conf/a-routes.yaml", detour("a", "one", "back"));
    await shows("the next change", mesh, { host: "a", answers: "one back" });
    expect(await istiod.metric("pilot_xds_pushes")).toBe(2);
  });

  it("that Envoy refuses cost no other host: it is named with its origin, others go on changing, and it heals", async () => {
    const mesh = await startHosts();
    const { istiod, port } = mesh;
    const stolen = `
apiVersion: networking.istio.io/v1alpha3
kind: EnvoyFilter
metadata: {name: thief, namespace: shop}
spec:
  configPatches:
  - applyTo: VIRTUAL_HOST
    match: {context: SIDECAR_OUTBOUND, routeConfiguration: {vhost: {name: "a.test:${port}"}}}
    patch: {operation: MERGE, value: {domains: [two.test]}}
`;
    await istiod.write("conf/thief.yaml", stolen);
    const vhds = await eventually("the refusal is shown", async () => {
      const client = (await syncz(istiod)).find(({ proxy }) => proxy === "client.shop");
      return client?.types.find(({ type, rejected }) => type === "VHDS" && rejected.length > 0);
    });
    expect(vhds.rejected).toMatchObject([{ name: `${port}/a.test:${port}`, error: expect.stringContaining("two.test") }]);
    await eventually("the log names the object", () => /rejected configuration.*EnvoyFilter\/shop\/thief/.test(istiod.log()));
    expect([await mesh.answer("a"), await mesh.answer("two")]).toEqual(["one", "two"]);

    await istiod.write("conf/one-routes.yaml", detour("one", "two", "later"));
    await shows("other hosts change", mesh, { host: "one", answers: "two later" });
    await istiod.write("conf/a-routes.yaml", detour("a", "two", "patched"));
    await shows("the host itself changes, without what was refused", mesh, { host: "a", answers: "two patched" });

    await istiod.write("conf/thief.yaml", stolen.replace("domains: [two.test]", "domains: [other.test]"));
    await shows("the corrected patch", mesh, { host: "other", answers: "two patched" });
    await eventually("nothing is shown as refused", async () =>
      (await syncz(istiod)).some(({ types }) => types.some(({ type, rejected }) => type === "VHDS" && rejected.length === 0)),
    );
  });

  it("come to an Envoy that was restarted as they are by then, all with their table, and one by one from then on", async () => {
    const mesh = await startHosts();
    const { istiod, port, proxy, sent } = mesh;
    await istiod.write("conf/a-routes.yaml", detour("a", "two", "before"));
    await shows("a change", mesh, { host: "a", answers: "two before" });
    await proxy.stop();
    await eventually("istiod misses it", async () => (await syncz(istiod)).length === 0);
    await istiod.write("conf/a-routes.yaml", detour("a", "one", "meanwhile"));
    await istiod.remove("conf/two.yaml");
    await istiod.write("conf/b.yaml", service("b", port, mesh.servers.two));

    const again = await mesh.startAgain();
    await shows("what changed meanwhile", mesh, { host: "a", answers: "one meanwhile" });
    await shows("what came meanwhile", mesh, { host: "b", answers: "two" });
    expect(await mesh.answer("one")).toBe("one");
    await hostsInStep(istiod);
    const held = ["a", "b", "one"].map((name) => `${port}/${name}.test:${port}`);
    await eventually("what went meanwhile is gone", async () => (await hostsOf(mesh)).discovered.join() === held.join());
    const [tables, hosts] = [await sent("rds"), await sent("vhds")];
    await istiod.write("conf/a-routes.yaml", detour("a", "b", "after"));
    await shows("the next change", mesh, { host: "a", answers: "two after" });
    expect([await sent("rds"), await sent("vhds")]).toEqual([tables, hosts + 1]);
    await again.assertNothingRejected();
  });

  it("may take a domain from another at once: nobody who calls it is left without", async () => {
    const mesh = await startHosts();
    const { istiod, port, servers, sent } = mesh;
    const domain = "10.77.0.1";
    const isAnsweredBy = (name: string) => eventually(`${name} answers`, async () => (await call({ port, host: domain })).by === name);
    const withDomain = (name: "one" | "two") =>
      istiod.write(`conf/${name}.yaml`, `${service(name, port, servers[name])}  addresses: [${domain}]\n`);
    await withDomain("one");
    await isAnsweredBy("one");
    const tables = await sent("rds");
    const traffic = keepCalling({ port, host: domain });
    for (const [from, to] of [
      ["one", "two"],
      ["two", "one"],
    ] as const) {
      // For a moment both have it, as where one file is written after another.
      await withDomain(to);
      await istiod.write(`conf/${from}.yaml`, service(from, port, servers[from]));
      await isAnsweredBy(to);
      expect([await mesh.answer("one"), await mesh.answer("two"), await mesh.answer("a")]).toEqual(["one", "two", "one"]);
    }
    await traffic.more(20);
    expect(await traffic.stop()).toEqual([]);
    expect(await sent("rds")).toBe(tables);
    await mesh.proxy.assertNothingRejected();
  });

  it("with a regular expression that is none never come to Envoy, whoever wrote it: the host stays as it was and others go on changing", async () => {
    const mesh = await startHosts();
    const { istiod, port } = mesh;
    await istiod.write("conf/a-routes.yaml", detour("a", "two", "good"));
    await shows("good rules", mesh, { host: "a", answers: "two good" });
    const bad = detour("a", "one", "bad").replace("http: [{", 'http: [{match: [{uri: {regex: "/(unclosed"}}], ');
    await istiod.write("conf/a-routes.yaml", bad);
    await eventually("the rules are refused", () => /VirtualService\/shop\/a.*regex/.test(istiod.log()));
    await istiod.write("conf/one-routes.yaml", detour("one", "two", "beside"));
    await shows("other hosts change", mesh, { host: "one", answers: "two beside" });
    expect(await mesh.answer("a")).toBe("two good");

    await istiod.write("conf/filter.yaml", brokenPatch(port));
    await eventually("the patch is left out", () =>
      /a patch is left out.*EnvoyFilter\/shop\/broken.*regular expression/.test(istiod.log()),
    );
    await istiod.write("conf/one-routes.yaml", detour("one", "two", "still"));
    await shows("other hosts change still", mesh, { host: "one", answers: "two still" });
    expect(await mesh.answer("a")).toBe("two good");
    await istiod.write("conf/a-routes.yaml", detour("a", "one", "healed"));
    await shows("the host itself changes, without the patch", mesh, { host: "a", answers: "one healed" });
    await mesh.proxy.assertNothingRejected();
  });

  it("are none for a proxy's explicit HTTP proxy without services, which opens at once all the same", async () => {
    const explicit = await freePort();
    const nothing = `
apiVersion: networking.istio.io/v1
kind: Sidecar
metadata: {name: nothing, namespace: empty}
spec: {egress: [{hosts: ["~/*"]}]}
`;
    const istiod = await startIstiod({ files: { "conf/nothing.yaml": nothing } });
    const proxy = await startProxy({
      xdsPort: istiod.grpcPort,
      name: "client",
      namespace: "empty",
      address: "127.0.0.1",
      metadata: { VHDS: "true", HTTP_PROXY_PORT: String(explicit) },
    });
    await listening(explicit);
    expect(await proxy.admin("/stats?filter=init_fetch_timeout"), "nothing was waited for in vain").not.toMatch(/: [1-9]/);
  });
});

describe.for([
  { what: "does not ask for them", options: { metadata: {} } },
  { what: "has a stream that cannot carry them", options: { protocol: "sotw" } },
] satisfies { what: string; options: Partial<ProxyOptions> }[])("a proxy that $what", ({ options }) => {
  it("is sent whole tables", async () => {
    const mesh = await startHosts(options);
    const { istiod, port } = mesh;
    expect(await mesh.answer("a")).toBe("one");
    await inStep(istiod, "client.shop");
    expect(await hostsOf(mesh)).toEqual({
      inline: [`a.test:${port}`, `one.test:${port}`, `two.test:${port}`, "allow_any"],
      discovered: [],
    });
    await istiod.write("conf/a-routes.yaml", detour("a", "two", "whole"));
    await shows("a change", mesh, { host: "a", answers: "two whole" });
    expect(await mesh.sent("vhds")).toBe(0);
  });
});
