import type { JsonObject } from "@bufbuild/protobuf";
import { assert, describe, it } from "vitest";
import { meshFrom } from "../../test/support/mesh-from.ts";

const service = (address: string, target: number): string => `
apiVersion: v1
kind: Service
metadata: {name: db, namespace: shop}
spec: {clusterIP: ${address}, selector: {app: db}, ports: [{name: tcp, port: 5432, targetPort: ${target}}, {name: http, port: 80}]}
---
`;
const pod = (name: string, labels: string): string => `
apiVersion: v1
kind: Pod
metadata: {name: ${name}, namespace: shop, labels: {${labels}}}
spec: {serviceAccountName: ${name}, containers: []}
status: {podIP: 10.1.0.1, phase: Running}
---
`;
const slice = (port: number): string => `
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: db-1, namespace: shop, labels: {kubernetes.io/service-name: db}}
addressType: IPv4
ports: [{name: tcp, port: ${port}}]
endpoints: [{addresses: [10.1.0.1], targetRef: {kind: Pod, name: db}}]
---
`;
const HEADER = `proxies:
- {name: here, namespace: shop, address: 10.1.0.1, CLUSTER_ID: Kubernetes, DNS_CAPTURE: "true"}
- {name: there, namespace: shop, address: 10.1.0.1, CLUSTER_ID: west, DNS_CAPTURE: "true"}
- {name: nowhere, namespace: shop, address: 10.2.0.1, CLUSTER_ID: machines, DNS_CAPTURE: "true"}
---
`;

const mesh = meshFrom(`${HEADER}${service("10.96.0.1", 5432)}${pod("db", "app: db")}${slice(5432)}`);
mesh.change({
  put: `${service("10.97.0.9", 6432)}${pod("db", "app: db, place: west")}${slice(6432)}{apiVersion: v1, kind: Namespace, metadata: {name: shop}}`,
  cluster: "west",
});

const told = async (name: string) => {
  const proxy = mesh.proxies.find((one) => one.name === name) ?? assert.fail(`no proxy ${name}`);
  const { lds, rds, nds, cds } = (await mesh.json(proxy)) as Record<string, Record<string, JsonObject>>;
  const [table] = Object.values(nds ?? {});
  return {
    labels: proxy.view.labels,
    listeners: Object.keys(lds ?? {}).filter((one) => one.endsWith("_5432")),
    inbound: Object.keys(cds ?? {}).filter((one) => one.startsWith("inbound|")),
    domains: JSON.stringify(rds?.["80"]).match(/10\.9[67]\.0\.\d/g),
    names: JSON.stringify(table).match(/10\.9[67]\.0\.\d/g),
  };
};

describe("a proxy in another cluster", () => {
  it("calls services by the addresses they have there", async () => {
    assert.deepInclude(await told("there"), { listeners: ["10.97.0.9_5432"], domains: ["10.97.0.9"], names: ["10.97.0.9"] });
    for (const name of ["here", "nowhere"])
      assert.deepInclude(await told(name), { listeners: ["10.96.0.1_5432"], domains: ["10.96.0.1"], names: ["10.96.0.1"] });
  });

  it("is the workload of that cluster, although one here has its address", async () => {
    const [here, there] = [await told("here"), await told("there")];
    assert.deepEqual([here.labels.place, there.labels.place], [undefined, "west"]);
    assert.deepEqual(
      [here.inbound, there.inbound],
      [
        ["inbound|80||", "inbound|5432||"],
        ["inbound|80||", "inbound|6432||"],
      ],
    );
  });
});
