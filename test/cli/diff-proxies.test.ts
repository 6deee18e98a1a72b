import assert from "node:assert/strict";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { describe, it, onTestFinished } from "vitest";
import { proxiesOf, report, resourcesOf, SHOP, tree } from "./diff-shop.ts";

describe("proxies of istioctl diff", () => {
  it("are the ones that are named", async () => {
    const cwd = await tree({
      ...SHOP,
      "node.json": JSON.stringify({
        node: { id: "sidecar~10.9.9.9~job.bank~bank.svc.cluster.local", metadata: { LABELS: { app: "job" } } },
      }),
    });
    const { report: data } = await report(
      ["-f", "rule.yaml", "--proxy", "node.json", "--proxy", "sidecar~10.9.9.8~job.shop~shop.svc.cluster.local"],
      cwd,
    );
    assert.equal(data.proxies, 2);
    assert.deepEqual(proxiesOf(data), [["job.shop"]]);
  });

  it("are those connected to istiod, where asked for", async () => {
    const cwd = await tree(SHOP);
    const client = (name: string, namespace: string, connection: number) => ({
      connectionId: `sidecar~10.9.9.${connection}~${name}.${namespace}~${namespace}.svc.cluster.local-${connection}`,
      metadata: { NAMESPACE: namespace, LABELS: {} },
    });
    const server = createServer((request, response) => {
      response.setHeader("content-type", "application/json");
      if (request.url !== "/debug/adsz") response.statusCode = 404;
      response.end(JSON.stringify({ totalClients: 2, clients: [client("a", "shop", 1), client("b", "bank", 2), client("b", "bank", 2)] }));
    });
    await new Promise<void>((done) => server.listen(0, "127.0.0.1", done));
    onTestFinished(() => void server.close());
    const istiod = `127.0.0.1:${(server.address() as AddressInfo).port}`;
    const { report: data } = await report(["-f", "rule.yaml", "--connected", "--istiod", istiod], cwd);
    assert.equal(data.proxies, 2);
    assert.deepEqual(proxiesOf(data), [["a.shop"]]);
  });
});

describe("the cost of istioctl diff", () => {
  it("is that of the change, however large the mesh is", async () => {
    const many = Array.from({ length: 1000 }, (_, n) => {
      const host = `s${n}.ns${n % 10}.svc.cluster.local`;
      return `apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: {name: s${n}, namespace: ns${n % 10}}
spec:
  hosts: [${host}]
  addresses: [10.${Math.floor(n / 250)}.${n % 250}.1]
  location: MESH_INTERNAL
  resolution: STATIC
  ports: [{number: 80, name: http, protocol: HTTP}]
  endpoints: [{address: 10.100.${n % 10}.${1 + (n % 5)}, labels: {app: a${n % 5}}}]
---
apiVersion: networking.istio.io/v1
kind: DestinationRule
metadata: {name: s${n}, namespace: ns${n % 10}}
spec: {host: ${host}, trafficPolicy: {connectionPool: {tcp: {maxConnections: 100}}}}
`;
    });
    const rule = `apiVersion: networking.istio.io/v1
kind: DestinationRule
metadata: {name: s7, namespace: ns7}
spec: {host: s7.ns7.svc.cluster.local, trafficPolicy: {connectionPool: {tcp: {maxConnections: 7}}}}
`;
    const cwd = await tree({ "etc/istio/conf/all.yaml": many.join("---\n"), "new.yaml": rule });
    const { report: data } = await report(["-f", "new.yaml"], cwd);
    assert.equal(data.proxies, 10);
    assert.deepEqual([...new Set(resourcesOf(data))], ["cds changed outbound|80||s7.ns7.svc.cluster.local"]);
    // what there is of the rule itself, then for each of the ten namespaces the choice of rules and the sets that hold the cluster
    assert.ok(data.queriesRun <= 50, `${data.queriesRun} queries were run`);
    const one = await report(["-f", "new.yaml", "--proxy", "sidecar~10.100.7.1~s7.ns7~ns7.svc.cluster.local"], cwd);
    assert.ok(one.report.queriesRun <= 12, `${one.report.queriesRun} queries were run for one proxy`);
  });
});
