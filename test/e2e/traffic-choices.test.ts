import { describe, expect, it } from "vitest";
import { call } from "../support/calls.ts";
import { httpEcho } from "../support/echo.ts";
import { type Istiod, startIstiod } from "../support/istiod.ts";
import { freePort } from "../support/ports.ts";
import { listening, type RunningProxy, startProxy } from "../support/proxy.ts";
import { eventually } from "../support/wait.ts";

const service = (ports: readonly number[], server: number): string => `
apiVersion: v1
kind: Service
metadata: {name: web, namespace: shop}
spec: {clusterIP: 10.96.0.5, ports: [${ports.map((port) => `{name: http-${port}, port: ${port}, targetPort: ${server}}`).join(", ")}]}
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: web-1, namespace: shop, labels: {kubernetes.io/service-name: web}}
addressType: IPv4
ports: [${ports.map((port) => `{name: http-${port}, port: ${server}, protocol: TCP}`).join(", ")}]
endpoints: [{addresses: [127.0.0.1], conditions: {ready: true}}]
`;

describe("which rule counts for whom", () => {
  it("is decided by port, gateway, the client's labels and namespace, and by short and wildcard hosts", async () => {
    const server = await httpEcho("web");
    const [port, other, edge] = [await freePort(), await freePort(), await freePort()];
    const rule = (name: string, match: string): string =>
      `  - {${match === "" ? "" : `match: [{${match}}], `}headers: {response: {set: {x-rule: ${name}}}}, route: [{destination: {host: web, port: {number: ${port}}}}]}\n`;
    const config = `${service([port, other], server.port)}
---
apiVersion: networking.istio.io/v1
kind: Gateway
metadata: {name: edge, namespace: shop}
spec: {selector: {app: edge}, servers: [{port: {number: ${edge}, name: http, protocol: HTTP}, hosts: ["shop/*.example.com", "bank/bank.test"]}]}
---
apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: {name: web, namespace: shop}
spec:
  hosts: [web, "*.example.com"]
  gateways: [mesh, edge]
  http:
${rule("edge", "gateways: [edge]")}${rule("port", `port: ${other}`)}${rule("label", "sourceLabels: {role: admin}")}${rule("namespace", "sourceNamespace: bank")}${rule("scheme", "scheme: {exact: https}")}${rule("counted", "uri: {prefix: /counted}, statPrefix: shop-counted")}${rule("rest", "")}
`;
    const istiod = await startIstiod({ files: { "conf/all.yaml": config } });
    const start = (
      name: string,
      options: { readonly namespace?: string; readonly labels?: Record<string, string>; readonly type?: "router" },
    ): Promise<RunningProxy> => startProxy({ xdsPort: istiod.grpcPort, name, address: "127.0.0.9", ...options });
    const ruleAt = async (at: number, host: string, path = "/"): Promise<unknown> => {
      const { headers, status } = await call({ port: at, host, path });
      return headers["x-rule"] ?? status;
    };
    const plain = await start("plain", {});
    await listening(port);
    await listening(other);
    expect(await ruleAt(port, "web")).toBe("rest");
    expect(await ruleAt(port, "web.shop.svc.cluster.local")).toBe("rest");
    expect(await ruleAt(port, "any.example.com")).toBe("rest");
    expect(await ruleAt(other, "web.shop")).toBe("port");
    expect(await ruleAt(port, "web", "/counted/1")).toBe("counted");
    expect(await plain.admin("/stats?filter=shop-counted.*upstream_rq_total")).toMatch(/upstream_rq_total: 1/);
    await plain.assertNothingRejected();
    await plain.stop();
    const admin = await start("admin", { labels: { role: "admin" } });
    await listening(port);
    expect(await ruleAt(port, "web")).toBe("label");
    await admin.stop();
    const bank = await start("bank", { namespace: "bank" });
    await listening(port);
    expect(await ruleAt(port, "web.shop")).toBe("namespace");
    await bank.stop();
    const gateway = await start("edge", { type: "router", labels: { app: "edge" } });
    await listening(edge);
    expect(await ruleAt(edge, "any.example.com")).toBe("edge");
    expect(await ruleAt(edge, "bank.test")).toBe(404);
    expect(await ruleAt(edge, "web.shop.svc.cluster.local")).toBe(404);
    await gateway.assertNothingRejected();
  });

  it("is the DestinationRule of the client's namespace, else the service's, else the mesh's; one may select workloads", async () => {
    const server = await httpEcho("web");
    const port = await freePort();
    /** A rule that shows itself by the name of the cookie it sets. */
    const cookieRule = (name: string, namespace: string, more = ""): string =>
      `{apiVersion: networking.istio.io/v1, kind: DestinationRule, metadata: {name: ${name}, namespace: ${namespace}}, spec: {host: web.shop.svc.cluster.local, ${more}trafficPolicy: {loadBalancer: {consistentHash: {httpCookie: {name: ${name}, ttl: 60s}}}}}}\n`;
    const istiod = await startIstiod({
      files: {
        "conf/web.yaml": service([port], server.port),
        "conf/root.yaml": cookieRule("root", "istio-system"),
        "conf/service.yaml": cookieRule("service", "shop"),
        "conf/client.yaml": cookieRule("client", "bank", 'exportTo: ["."], '),
      },
    });
    const proxy = await startProxy({
      xdsPort: istiod.grpcPort,
      name: "client",
      namespace: "bank",
      address: "127.0.0.9",
      labels: { app: "client" },
    });
    await listening(port);
    const counts = (name: string): Promise<boolean> =>
      eventually(`the rule ${name} counts`, async () => {
        const [cookie = "none"] = (await call({ port, host: "web.shop" })).headers["set-cookie"] ?? [];
        return cookie.startsWith(name);
      });
    await counts("client");
    await istiod.write(
      "conf/selective.yaml",
      cookieRule("selective", "bank", 'exportTo: ["."], workloadSelector: {matchLabels: {app: client}}, '),
    );
    await counts("selective");
    await removeAll(istiod, "conf/selective.yaml", "conf/client.yaml");
    await counts("service");
    await istiod.write("conf/service.yaml", cookieRule("service", "shop", 'exportTo: ["."], '));
    await counts("root");
    await removeAll(istiod, "conf/root.yaml");
    await counts("none");
    await proxy.assertNothingRejected();
  });
});

const removeAll = async (istiod: Istiod, ...files: readonly string[]): Promise<void> => {
  for (const file of files) await istiod.remove(file);
};
