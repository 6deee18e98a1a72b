import { cp, readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { startAgentProcess } from "../support/agent.ts";
import { meshBelieving, startAgentMesh, tokenFor } from "../support/agent-mesh.ts";
import { call, tally } from "../support/calls.ts";
import { createCertificateIssuer, tlsSecret } from "../support/certificates.ts";
import { tempDir } from "../support/cleanup.ts";
import { httpEcho } from "../support/echo.ts";
import { rootOf } from "../support/identity.ts";
import { startIstiod } from "../support/istiod.ts";
import { freePort } from "../support/ports.ts";
import { assertSentNothing, inStep, updatesOf } from "../support/sync.ts";
import { tlsCall } from "../support/tls-call.ts";
import { createIssuer } from "../support/tokens.ts";
import { keepCalling } from "../support/traffic.ts";
import { eventually, says } from "../support/wait.ts";

/** A gateway that ends TLS with a credential of the control plane's, and is told by an EnvoyFilter how to start. */
const gateway = (port: number, server: number): string => `
apiVersion: networking.istio.io/v1
kind: Gateway
metadata: {name: edge, namespace: shop}
spec:
  selector: {app: edge}
  servers: [{port: {number: ${port}, name: https, protocol: HTTPS}, hosts: [a.example.com], tls: {mode: SIMPLE, credentialName: cert}}]
---
apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: {name: edge, namespace: shop}
spec: {hosts: [a.example.com], gateways: [edge], http: [{route: [{destination: {host: app.example.com}}]}]}
---
apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: {name: app, namespace: shop}
spec:
  hosts: [app.example.com]
  resolution: STATIC
  ports: [{number: 80, name: http, protocol: HTTP}]
  endpoints: [{address: 127.0.0.1, ports: {http: ${server}}}]
---
apiVersion: networking.istio.io/v1alpha3
kind: EnvoyFilter
metadata: {name: start, namespace: shop}
spec: {configPatches: [{applyTo: BOOTSTRAP, match: {context: GATEWAY}, patch: {operation: MERGE, value: {stats_server_version_override: 7}}}]}
`;

describe("without a control plane", () => {
  it("traffic goes on, an Envoy that crashes comes back from disk, and nothing is sent again when istiod returns", async () => {
    const mesh = await startAgentMesh();
    const { istiod, client, server, target } = mesh;
    await inStep(istiod, "web.shop");
    const traffic = keepCalling(target);
    await traffic.more(20);
    await istiod.stop("SIGKILL");
    await traffic.more(50);
    expect(await traffic.stop()).toEqual([]);

    for (const agent of [client, server]) {
      const before = await agent.envoyPid();
      process.kill(before, "SIGKILL");
      await eventually("another Envoy runs", async () => (await agent.envoyPid()) !== before);
      await agent.ready();
      await eventually("it is told from where", () => agent.log().includes("served from disk"));
    }
    await eventually("calls are answered", async () => (await call(target)).status === 200);
    expect(await tally(20, target)).toEqual({ cart: 20 });
    expect(mesh.app.hits.at(-1)?.headers["x-forwarded-client-cert"]).toContain("spiffe://cluster.local/ns/shop/sa/web");

    const before = await updatesOf(client);
    await istiod.start();
    await eventually("the agents are connected", async () => (await istiod.metric("pilot_xds")) === 2);
    await inStep(istiod, "web.shop");
    await assertSentNothing(client, istiod, before);
    expect(await istiod.metric("pilot_xds_pushes")).toBe(0);
    expect(await tally(5, target)).toEqual({ cart: 5 });
  });

  it("agents go on at another replica, which sends nothing that they have, and then what changes there", async () => {
    const port = await freePort();
    const { istiod, client, target } = await startAgentMesh({
      address: ({ securePort }) => `127.0.0.1:${securePort},127.0.0.1:${port}`,
    });
    const home = await tempDir();
    await cp(join(istiod.home, "etc"), join(home, "etc"), { recursive: true });
    const other = await startIstiod({ home, env: { SECURE_GRPC_ADDR: `127.0.0.1:${port}` } });
    await inStep(istiod, "web.shop");
    const before = await updatesOf(client);
    const traffic = keepCalling(target);
    await istiod.stop("SIGKILL");
    await eventually("the agents are at the other", async () => (await other.metric("pilot_xds")) === 2);
    await inStep(other, "web.shop");
    await assertSentNothing(client, other, before);
    expect(await traffic.stop()).toEqual([]);
    await other.write(
      "conf/more.yaml",
      "{apiVersion: networking.istio.io/v1, kind: VirtualService, metadata: {name: cart, namespace: shop}, spec: {hosts: [cart], http: [{directResponse: {status: 418}}]}}\n",
    );
    await eventually("what changes there arrives", async () => (await call(target)).status === 418);
  });

  it("an agent that is killed leaves its Envoy serving, and the next agent replaces it", async () => {
    const { client, target } = await startAgentMesh();
    const orphan = await client.envoyPid();
    await client.stop("SIGKILL");
    expect(await tally(20, target)).toEqual({ cart: 20 });
    client.start();
    await client.ready();
    await says(client, "outlived its agent");
    expect(await client.envoyPid()).not.toBe(orphan);
    await eventually("calls are answered", async () => (await call(target)).status === 200);
    expect(await tally(10, target)).toEqual({ cart: 10 });
  });

  it("a proxy for which there is nothing, neither listeners nor names, comes back all the same", async () => {
    const issuer = createIssuer("https://id.example.com");
    const istiod = await startIstiod({ files: { "mesh.yaml": meshBelieving(issuer) } });
    const agent = await startAgentProcess({
      name: "edge",
      args: ["proxy", "router"],
      serviceAccount: "edge",
      address: "127.0.0.13",
      istiod: `127.0.0.1:${istiod.securePort}`,
      root: await rootOf(istiod),
      token: tokenFor(issuer, "edge"),
      env: { ISTIO_META_ENABLE_DNS_SERVER: "true", DNS_PROXY_ADDR: `127.0.0.1:${await freePort()}` },
    });
    const kept = join(agent.home, "var/lib/istio/envoy/last-good");
    const noted = (ending: string) => async (): Promise<boolean> => (await readdir(kept)).some((file) => file.endsWith(ending));
    for (const ending of ["cds.pb", "names.pb"]) await eventually(`${ending} is there`, noted(ending));
    expect(await readFile(join(kept, "names.pb"))).toHaveLength(0);
    await istiod.stop("SIGKILL");
    const before = await agent.envoyPid();
    process.kill(before, "SIGKILL");
    await eventually("another Envoy runs", async () => (await agent.envoyPid()) !== before);
    await agent.ready();
    await agent.stop("SIGKILL");
    agent.start();
    await agent.ready();
  });

  it("a gateway keeps the credentials it was given, in memory alone", async () => {
    const issuer = createIssuer("https://id.example.com");
    const ca = await createCertificateIssuer("servers");
    const app = await httpEcho("app");
    const port = await freePort();
    const files = {
      "mesh.yaml": meshBelieving(issuer),
      "conf/edge.yaml": gateway(port, app.port),
      "conf/cert.yaml": tlsSecret("shop/cert", await ca.issue("DNS:a.example.com")),
    };
    const istiod = await startIstiod({ files });
    const agent = await startAgentProcess({
      name: "edge",
      args: ["proxy", "router"],
      serviceAccount: "edge",
      address: "127.0.0.13",
      istiod: `127.0.0.1:${istiod.securePort}`,
      root: await rootOf(istiod),
      token: tokenFor(issuer, "edge"),
      labels: { app: "edge" },
    });
    const ask = () => tlsCall({ port, name: "a.example.com", ca: ca.cert });
    expect(await eventually("the gateway answers", ask)).toMatchObject({ status: 200, by: "app" });
    expect(await agent.admin("/config_dump")).toContain('"stats_server_version_override": "7"');
    await istiod.stop("SIGKILL");
    const before = await agent.envoyPid();
    process.kill(before, "SIGKILL");
    await eventually("another Envoy runs", async () => (await agent.envoyPid()) !== before);
    expect(await eventually("the gateway answers again", ask)).toMatchObject({ status: 200, by: "app" });
    const kept = join(agent.home, "var/lib/istio/envoy/last-good");
    for (const file of await readdir(kept)) expect((await readFile(join(kept, file))).includes("PRIVATE KEY")).toBe(false);
  });
});
