import { readFile } from "node:fs/promises";
import { createServer as createHttp2Server } from "node:http2";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { describe, expect, it, onTestFinished } from "vitest";
import { call, converse } from "../support/calls.ts";
import { tempDir } from "../support/cleanup.ts";
import { httpEcho, tcpEcho } from "../support/echo.ts";
import { startIstiod } from "../support/istiod.ts";
import { freePort } from "../support/ports.ts";
import { listening, startProxy } from "../support/proxy.ts";
import { eventually } from "../support/wait.ts";

const entry = (
  namespace: string,
  { port, server, protocol = "HTTP" }: { readonly port: number; readonly server: number; readonly protocol?: string },
): string => `
---
apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: {name: api, namespace: ${namespace}}
spec:
  hosts: [api.${namespace}.test]
  location: MESH_INTERNAL
  resolution: STATIC
  ports: [{number: ${port}, name: main, protocol: ${protocol}}]
  endpoints: [{address: 127.0.0.1, ports: {main: ${server}}}]
`;

const namespace = (name: string, labels: string): string => `
---
apiVersion: v1
kind: Namespace
metadata: {name: ${name}, labels: {${labels}}}
`;

const REFUSED = 502;

describe("settings of the whole mesh", () => {
  it("decide which namespaces and services count, and follow labels and mesh.yaml", async () => {
    const [shop, bank] = [await httpEcho("shop"), await httpEcho("bank")];
    const port = await freePort();
    const mesh = (more: string): string => `outboundTrafficPolicy: {mode: REGISTRY_ONLY}\n${more}`;
    const istiod = await startIstiod({
      files: {
        "mesh.yaml": mesh("discoverySelectors: [{matchLabels: {mesh: member}}]\n"),
        "conf/shop.yaml": entry("shop", { port, server: shop.port }),
        "conf/bank.yaml": entry("bank", { port, server: bank.port }),
        "conf/namespaces.yaml": namespace("shop", "mesh: member") + namespace("bank", "mesh: other"),
      },
    });
    const proxy = await startProxy({ xdsPort: istiod.grpcPort, name: "client", address: "127.0.0.9" });
    await listening(port);
    const seen = async (): Promise<string> => {
      const answers = [await call({ port, host: "api.shop.test" }), await call({ port, host: "api.bank.test" })];
      return answers.map(({ by, status }) => by || status).join(" ");
    };
    const becomes = (what: string): Promise<boolean> => eventually(`clients see ${what}`, async () => (await seen()) === what);
    expect(await seen()).toBe(`shop ${REFUSED}`);
    await istiod.write("conf/namespaces.yaml", namespace("shop", "mesh: member") + namespace("bank", "mesh: member"));
    await becomes("shop bank");
    await istiod.write(
      "mesh.yaml",
      mesh('discoverySelectors: [{matchExpressions: [{key: "kubernetes.io/metadata.name", operator: NotIn, values: [bank]}]}]\n'),
    );
    await becomes(`shop ${REFUSED}`);
    await istiod.write("mesh.yaml", mesh("discoverySelectors: [{matchExpressions: [{key: mesh, operator: Has}]}]\n"));
    await eventually("the wrong selector is reported", async () =>
      /discoverySelectors\[0\].matchExpressions\[0\]/.test(JSON.stringify(await (await istiod.debug("/debug/problems")).json())),
    );
    expect(await seen()).toBe(`shop ${REFUSED}`);
    await istiod.write("mesh.yaml", mesh(""));
    await becomes("shop bank");
    await istiod.write("mesh.yaml", mesh('defaultServiceExportTo: ["."]\n'));
    await becomes(`shop ${REFUSED}`);
    await istiod.write(
      "mesh.yaml",
      mesh(
        "serviceEntryVisibility: {defaultVisibility: PUBLIC, applyToSidecars: true, policies: [{visibility: NAMESPACE, matchingRules: [{namespaceSelector: {matchLabels: {mesh: member}}}]}]}\n",
      ),
    );
    await eventually("mesh.yaml is read", async () =>
      JSON.stringify(await (await istiod.debug("/debug/mesh")).json()).includes("applyToSidecars"),
    );
    await becomes(`shop ${REFUSED}`);
    await istiod.write("mesh.yaml", mesh(""));
    await becomes("shop bank");
    await proxy.assertNothingRejected();
  });

  it("shape requests: retries, paths, HTTP/2, logs", async () => {
    const answers: number[] = [];
    const one = await httpEcho("one", { status: () => answers.shift() ?? 200 });
    const versions: string[] = [];
    const two = createHttp2Server((request, response) => {
      versions.push(request.httpVersion);
      response.end("two");
    });
    await new Promise<void>((resolve) => two.listen(0, "127.0.0.1", resolve));
    onTestFinished(() => void two.close());
    const port = await freePort();
    const log = join(await tempDir(), "access.log");
    const istiod = await startIstiod({
      files: {
        "mesh.yaml": `
defaultHttpRetryPolicy: {attempts: 3, retryOn: "503", backoff: 1ms}
pathNormalization: {normalization: MERGE_SLASHES}
h2UpgradePolicy: UPGRADE
accessLogFile: ${log}
accessLogEncoding: JSON
accessLogFormat: '{"path": "%REQ(:PATH)%", "code": "%RESPONSE_CODE%"}'
`,
        "conf/one.yaml": `${entry("shop", { port, server: one.port })}---
apiVersion: networking.istio.io/v1
kind: DestinationRule
metadata: {name: api, namespace: shop}
spec: {host: api.shop.test, trafficPolicy: {connectionPool: {http: {h2UpgradePolicy: DO_NOT_UPGRADE}}}}
`,
        "conf/two.yaml": entry("bank", { port, server: (two.address() as AddressInfo).port }),
      },
    });
    const proxy = await startProxy({ xdsPort: istiod.grpcPort, name: "client", address: "127.0.0.9" });
    await listening(port);
    answers.push(503, 503, 503);
    expect((await call({ port, host: "api.shop.test", path: "/a//b/./c" })).status).toBe(200);
    expect(one.hits.map(({ url }) => url)).toEqual(Array(4).fill("/a/b/c"));
    expect((await call({ port, host: "api.bank.test" })).body).toBe("two");
    expect(versions).toEqual(["2.0"]);
    const lines = await eventually("both requests are logged", async () => {
      const written = (await readFile(log, "utf8")).trim().split("\n");
      return written.length === 2 && written;
    });
    expect(lines.map((line) => JSON.parse(line) as unknown)).toEqual([
      { path: "/a/b/c", code: 200 },
      { path: "/", code: 200 },
    ]);
    await istiod.write("mesh.yaml", "defaultHttpRetryPolicy: {attempts: 0}\n");
    await eventually("nothing is tried again", async () => {
      answers.splice(0, answers.length, 503);
      return (await call({ port, host: "api.shop.test" })).status === 503;
    });
    await proxy.assertNothingRejected();
  });

  it("lead through the gateway of another network that is given by name", async () => {
    const [near, gateway] = [await tcpEcho("near"), await tcpEcho("gateway")];
    const port = await freePort();
    const networks = (name: string): string =>
      `networks: {far: {endpoints: [{fromCidr: 198.51.100.0/24}], gateways: [{address: ${name}, port: ${gateway.port}}]}}\n`;
    const file = (network: string): string => `
apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: {name: db, namespace: shop}
spec:
  hosts: [db.test]
  location: MESH_INTERNAL
  resolution: STATIC
  ports: [{number: ${port}, name: main, protocol: TCP}]
  endpoints: [{address: 127.0.0.1, ports: {main: ${near.port}}, network: "${network}", labels: {security.istio.io/tlsMode: istio}}]
---
apiVersion: networking.istio.io/v1
kind: DestinationRule
metadata: {name: db, namespace: shop}
spec: {host: db.test, trafficPolicy: {tls: {mode: DISABLE}}}
`;
    const istiod = await startIstiod({ files: { "networks.yaml": networks("localhost"), "conf/db.yaml": file("") } });
    const proxy = await startProxy({ xdsPort: istiod.grpcPort, name: "client", address: "127.0.0.9" });
    await listening(port);
    expect(await converse({ port, lines: 1 })).toEqual(["near"]);
    await istiod.write("conf/db.yaml", file("far").replace(/---[\s\S]*$/, ""));
    const endpoints = async (): Promise<string> => proxy.admin("/clusters");
    await eventually("the gateway's address is sent", async () => (await endpoints()).includes(`127.0.0.1:${gateway.port}::`));
    await istiod.write("networks.yaml", networks("no-such-name.invalid"));
    await eventually("the failure is told", () => /no-such-name\.invalid cannot be resolved/.test(istiod.log()));
    await istiod.write("networks.yaml", networks("localhost"));
    await eventually("the gateway is back", async () => (await endpoints()).includes(`127.0.0.1:${gateway.port}::`));
    await proxy.assertNothingRejected();
  });
});
