import { describe, expect, it } from "vitest";
import { meshFrom } from "../../../test/support/mesh-from.ts";
import type { ConfigObject } from "../../config/object.ts";
import type { ProxyView } from "../../model/proxy.ts";
import type { ResourceSet } from "../../wire/encoded.ts";
import { LISTENER_TYPE } from "../../wire/type-urls.ts";

const WANTED = { wildcard: true, names: { id: 0, names: new Set<string>() } };

const service = (name: string, namespace: string, ports: string): string => `
---
apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: {name: ${name}, namespace: ${namespace}}
spec:
  hosts: [${name}.${namespace}.svc.cluster.local]
  addresses: [10.96.0.${name.length}]
  location: MESH_INTERNAL
  resolution: STATIC
  ports: [${ports}]
  workloadSelector: {labels: {app: ${name}}}`;

const workload = (name: string, app: string, address: string): string => `
---
apiVersion: networking.istio.io/v1
kind: WorkloadEntry
metadata: {name: ${name}, namespace: shop}
spec: {address: ${address}, labels: {app: ${app}}}`;

const HTTP = "{number: 80, name: http, protocol: HTTP, targetPort: 8080}";
const TCP = "{number: 5432, name: tcp, protocol: TCP}";

/** Two replicas of `web`, one `database`, and a proxy of another namespace. */
function shop() {
  const mesh = meshFrom(`
proxies:
- {name: web-1, namespace: shop, address: 10.1.0.1, labels: {app: web}}
- {name: web-2, namespace: shop, address: 10.1.0.2, labels: {app: web}}
- {name: database-1, namespace: shop, address: 10.1.0.3, labels: {app: database}}
- {name: stranger, namespace: elsewhere, address: 10.1.0.4}
---${service("web", "shop", HTTP).slice(4)}${service("database", "shop", TCP)}${workload("web-1", "web", "10.1.0.1")}${workload("web-2", "web", "10.1.0.2")}${workload("database-1", "database", "10.1.0.3")}
`);
  const provider = mesh.world.providers.find(({ typeUrl }) => typeUrl === LISTENER_TYPE);
  if (provider === undefined) throw new Error("no listeners");
  const view = (name: string): ProxyView => {
    const found = mesh.proxies.find((proxy) => proxy.name === name);
    if (found === undefined) throw new Error(`no proxy ${name}`);
    return found.view;
  };
  const offered = (name: string): ResourceSet => provider.offered(view(name), WANTED);
  return { ...mesh, provider, view, offered };
}

describe("listeners", () => {
  it("are one set for all replicas of a workload", () => {
    const { offered } = shop();
    expect(offered("web-1")).toBe(offered("web-2"));
    expect(offered("web-1")).not.toBe(offered("database-1"));
  });

  it("are built once for all namespaces that want the same", () => {
    const { offered } = shop();
    for (const name of ["0.0.0.0_80", "10.96.0.8_5432", "virtualOutbound"]) {
      expect(offered("stranger").resources.get(name)).toBe(offered("web-1").resources.get(name));
    }
  });

  it("stay as they are when endpoints change", () => {
    const { offered, world } = shop();
    const before = offered("database-1");
    const other = world.inputs.objects.get("WorkloadEntry/shop/web-2") as ConfigObject;
    world.inputs.objects.delete("WorkloadEntry/shop/web-2");
    expect(offered("database-1")).toBe(before);
    world.inputs.objects.set("WorkloadEntry/shop/web-2", other);
  });

  it("change alone when a service moves to another port", () => {
    const { offered, world } = shop();
    const before = offered("web-1").resources;
    const object = world.inputs.objects.get("ServiceEntry/shop/database") as ConfigObject<{ ports: { number: number }[] }>;
    const spec = { ...object.spec, ports: object.spec.ports.map((port) => ({ ...port, number: 6432 })) };
    world.inputs.objects.set("ServiceEntry/shop/database", { ...object, spec, hash: "changed" });
    const after = offered("web-1").resources;
    expect([...before.keys()].filter((name) => after.get(name) !== before.get(name))).toEqual(["10.96.0.8_5432"]);
    expect([...after.keys()].filter((name) => !before.has(name))).toEqual(["10.96.0.8_6432"]);
  });

  it("name the objects they came from", () => {
    const { provider, view } = shop();
    expect(provider.provenance(view("web-1"), "10.96.0.8_5432")).toEqual(["ServiceEntry/shop/database"]);
    expect(provider.provenance(view("web-1"), "0.0.0.0_80")).toEqual(["ServiceEntry/shop/web"]);
    expect(provider.provenance(view("web-1"), "virtualInbound")).toContain("ServiceEntry/shop/web");
  });

  it("are prepared in steps", () => {
    const { provider, view } = shop();
    expect([...provider.prepare(view("web-1"), WANTED)].length).toBeGreaterThan(3);
    expect([...provider.prepare(view("web-2"), WANTED)]).toHaveLength(3);
  });
});
