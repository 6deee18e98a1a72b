import assert from "node:assert/strict";
import { mkdir, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import type { DiffReport } from "../../src/cli/diff/diff-report.ts";
import { tempDir } from "../support/cleanup.ts";
import { istioctl } from "./cli-host.ts";

/** A Kubernetes Service of the mesh that changes are tried on. */
export const service = (name: string, namespace: string): string => `apiVersion: v1
kind: Service
metadata: {name: ${name}, namespace: ${namespace}}
spec:
  clusterIP: 10.96.${namespace.length}.${name.length}
  selector: {app: ${name}}
  ports: [{name: http, port: 80}]
---
`;

/** A pod of one of them. */
export const pod = (
  name: string,
  { namespace, app, ip, version = "v1" }: { namespace: string; app: string; ip: string; version?: string },
): string => `apiVersion: v1
kind: Pod
metadata: {name: ${name}, namespace: ${namespace}, labels: {app: ${app}, version: ${version}}}
spec: {serviceAccountName: ${app}}
status: {podIP: ${ip}, conditions: [{type: Ready, status: "True"}]}
---
`;

/** Two namespaces, a gateway, and a route with weights. */
export const SHOP = {
  "etc/istio/conf/shop.yaml": [
    service("reviews", "shop"),
    service("cart", "shop"),
    pod("reviews-1", { namespace: "shop", app: "reviews", ip: "10.1.0.1" }),
    pod("reviews-2", { namespace: "shop", app: "reviews", ip: "10.1.0.2" }),
    pod("cart-1", { namespace: "shop", app: "cart", ip: "10.1.0.3" }),
  ].join(""),
  "etc/istio/conf/bank.yaml": `${service("teller", "bank")}${pod("teller-1", { namespace: "bank", app: "teller", ip: "10.2.0.1" })}`,
  "etc/istio/conf/edge.yaml": `apiVersion: networking.istio.io/v1
kind: Gateway
metadata: {name: edge, namespace: shop}
spec:
  selector: {istio: ingress}
  servers: [{port: {number: 80, name: http, protocol: HTTP}, hosts: [shop.example.com]}]
---
apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: {name: edge, namespace: shop}
spec:
  hosts: [shop.example.com]
  gateways: [edge]
  http: [{timeout: 5s, route: [{destination: {host: cart}}]}]
`,
  "rule.yaml": `# subsets, for clients of the shop
apiVersion: networking.istio.io/v1
kind: DestinationRule
metadata: {name: reviews, namespace: shop}
spec:
  host: reviews
  exportTo: ["."]
  subsets: [{name: v1, labels: {version: v1}}]
`,
};

/** Writes files below a new directory, and gives that. */
export async function tree(files: Readonly<Record<string, string>>): Promise<string> {
  const dir = await tempDir();
  for (const [path, text] of Object.entries(files)) {
    await mkdir(dirname(join(dir, path)), { recursive: true });
    await writeFile(join(dir, path), text);
  }
  return dir;
}

/** Runs the command, and gives what it says as JSON. */
export async function report(words: readonly string[], cwd: string): Promise<{ readonly status: number; readonly report: DiffReport }> {
  const { status, out, err } = await istioctl(["diff", ...words, "-o", "json"], { cwd });
  assert.equal(err, "");
  return { status, report: JSON.parse(out) as DiffReport };
}

/** Proxies that a change touches, by class. */
export const proxiesOf = ({ classes }: DiffReport): readonly (readonly string[])[] =>
  classes.map(({ proxies }) => proxies.map(({ name, namespace }) => `${name}.${namespace}`));

/** What of theirs. */
export const resourcesOf = ({ classes }: DiffReport): readonly string[] =>
  classes.flatMap(({ resources }) => resources.map(({ type, change, name }) => `${type} ${change} ${name}`));
