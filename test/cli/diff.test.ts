import assert from "node:assert/strict";
import { mkdir, readdir, writeFile } from "node:fs/promises";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { dirname, join } from "node:path";
import { load } from "js-yaml";
import { describe, it, onTestFinished } from "vitest";
import { silentLog } from "../../src/base/log.ts";
import type { DiffReport } from "../../src/cli/diff/diff-report.ts";
import { createLastGood } from "../../src/config/store/last-good.ts";
import { createCertificateIssuer } from "../support/certificates.ts";
import { tempDir } from "../support/cleanup.ts";
import { type CliResult, istioctl } from "./cli-host.ts";

const service = (name: string, namespace: string): string => `apiVersion: v1
kind: Service
metadata: {name: ${name}, namespace: ${namespace}}
spec:
  clusterIP: 10.96.${namespace.length}.${name.length}
  selector: {app: ${name}}
  ports: [{name: http, port: 80}]
---
`;
const pod = (
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
const SHOP = {
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

async function tree(files: Readonly<Record<string, string>>): Promise<string> {
  const dir = await tempDir();
  for (const [path, text] of Object.entries(files)) {
    await mkdir(dirname(join(dir, path)), { recursive: true });
    await writeFile(join(dir, path), text);
  }
  return dir;
}

async function report(words: readonly string[], cwd: string): Promise<{ readonly status: number; readonly report: DiffReport }> {
  const { status, out, err } = await istioctl(["diff", ...words, "-o", "json"], { cwd });
  assert.equal(err, "");
  return { status, report: JSON.parse(out) as DiffReport };
}

const proxiesOf = ({ classes }: DiffReport): readonly (readonly string[])[] =>
  classes.map(({ proxies }) => proxies.map(({ name, namespace }) => `${name}.${namespace}`));

const resourcesOf = ({ classes }: DiffReport): readonly string[] =>
  classes.flatMap(({ resources }) => resources.map(({ type, change, name }) => `${type} ${change} ${name}`));

describe("istioctl diff", () => {
  it("says which proxies a change touches and what of theirs, and touches no one else", async () => {
    const cwd = await tree(SHOP);
    const { status, out } = await istioctl(["diff", "-f", "rule.yaml"], { cwd });
    assert.equal(status, 1);
    assert.equal(
      out,
      `DestinationRule/shop/reviews added (rule.yaml:2)

4 of 5 proxies touched: 2 clusters changed, 1 cluster added, 1 assignment added

reviews-1.shop, reviews-2.shop:
  ~ cluster     inbound|80||
  + cluster     outbound|80|v1|reviews.shop.svc.cluster.local
  ~ cluster     outbound|80||reviews.shop.svc.cluster.local
  + assignment  outbound|80|v1|reviews.shop.svc.cluster.local

cart-1.shop, any gateway with istio=ingress of shop:
  + cluster     outbound|80|v1|reviews.shop.svc.cluster.local
  ~ cluster     outbound|80||reviews.shop.svc.cluster.local
  + assignment  outbound|80|v1|reviews.shop.svc.cluster.local
`,
    );
  });

  it("shows what differs inside, with the place in a long resource", async () => {
    const cwd = await tree({ ...SHOP, "new.yaml": SHOP["etc/istio/conf/edge.yaml"].replace("timeout: 5s", "timeout: 7s") });
    const { status, out } = await istioctl(["diff", "-f", "new.yaml", "--full"], { cwd });
    assert.equal(status, 1);
    assert.equal(
      out,
      `VirtualService/shop/edge changed (new.yaml:8)

1 of 5 proxies touched: 1 route table changed

any gateway with istio=ingress of shop:
  ~ route table  http.80
      @@ virtualHosts: / - name: shop.example.com:80 / routes: / - match:
          prefix: /
        route:
          cluster: outbound|80||cart.shop.svc.cluster.local
      -   timeout: 5s
      +   timeout: 7s
          retryPolicy:
            retryOn: connect-failure,refused-stream,unavailable,cancelled,retriable-status-codes
            numRetries: 2
      @@ virtualHosts: / - name: shop.example.com:80 / routes: / - match:
                typedConfig:
                  '@type': type.googleapis.com/envoy.extensions.retry.host.previous_hosts.v3.PreviousHostsPredicate
            hostSelectionRetryMaxAttempts: '5'
      -   maxGrpcTimeout: 5s
      +   maxGrpcTimeout: 7s
        metadata:
          filterMetadata:
            istio:
`,
    );
    const { report: data } = await report(["new.yaml", "--full"], cwd);
    const [resource] = data.classes[0]?.resources ?? [];
    assert.match(JSON.stringify(resource?.before), /"timeout":"5s"/);
    assert.match(JSON.stringify(resource?.after), /"timeout":"7s"/);
  });

  it("is what really happens: once the change is in place nothing differs, and taking it back is its mirror", async () => {
    const cwd = await tree(SHOP);
    const there = await report(["-f", "rule.yaml"], cwd);
    await writeFile(join(cwd, "etc/istio/conf/rule.yaml"), SHOP["rule.yaml"]);
    const { status, out } = await istioctl(["diff", "-f", "rule.yaml"], { cwd });
    assert.deepEqual([status, out], [0, "no differences: 5 proxies would be configured as before\n"]);
    const back = await report(["--remove", "dr/shop/reviews"], cwd);
    assert.equal(back.status, 1);
    const mirror = { added: "removed", changed: "changed", removed: "added" } as const;
    const mirrored = resourcesOf(there.report).map((line) => line.replace(/added|removed/, (word) => mirror[word as keyof typeof mirror]));
    assert.deepEqual(resourcesOf(back.report), mirrored);
    assert.deepEqual(proxiesOf(back.report), proxiesOf(there.report));
    assert.equal(back.report.objects[0]?.place, "etc/istio/conf/rule.yaml:2");
  });

  it("compares with a whole new configuration, from any directory and from standard input", async () => {
    const cwd = await tree({ ...SHOP, "other/shop/a.yaml": service("reviews", "shop").replace(", namespace: shop", "") });
    const { report: data } = await report(["--base", "etc/istio/conf", "--prune", "other"], cwd);
    assert.deepEqual(data.objects.map(({ change }) => change).sort(), Array(8).fill("removed"));
    assert.ok(!data.objects.some(({ object }) => object === "Service/shop/reviews"));
    const { status } = await istioctl(["diff", "-n", "shop", "-"], {
      cwd,
      stdin: service("reviews", "shop").replace(", namespace: shop", ""),
    });
    assert.equal(status, 0);
  });

  it("tries a mesh.yaml, and says what waits for a restart", async () => {
    const cwd = await tree({
      ...SHOP,
      "etc/istio/mesh.yaml": "accessLogFile: /dev/stdout\n",
      "mesh.yaml": "outboundTrafficPolicy: {mode: REGISTRY_ONLY}\naccessLogFile: /dev/stdout\nlisten: {grpcAddr: 127.0.0.1:1}\n",
    });
    const { status, report: data } = await report(["-f", "mesh.yaml"], cwd);
    assert.equal(status, 1);
    assert.equal(data.touched, 4, "all sidecars, and not the gateway");
    assert.ok(resourcesOf(data).includes("lds changed virtualOutbound"));
    assert.ok(data.notes.some((note) => /listen\.grpcAddr changes from .* restarted/.test(note)));
  });

  it("counts a workload that comes, and one that becomes something else", async () => {
    const cwd = await tree({ ...SHOP, "new.yaml": pod("cart-2", { namespace: "shop", app: "cart", ip: "10.1.0.4" }) });
    const { report: data } = await report(["-f", "new.yaml"], cwd);
    assert.equal(data.proxies, 6);
    const own = data.classes.find(({ proxies }) => proxies.some(({ name }) => name === "cart-2"));
    assert.ok(own?.resources.some(({ type, name, change }) => type === "cds" && name === "inbound|80||" && change === "added"));
    const others = data.classes.filter((one) => one !== own).flatMap(({ resources }) => resources.map(({ type }) => type));
    assert.deepEqual([...new Set(others)], ["eds"], "the others only get its address");
  });
});

describe("what a change makes wrong", () => {
  const gateway = (secret: string): string => `apiVersion: networking.istio.io/v1
kind: Gateway
metadata: {name: secure, namespace: shop}
spec:
  selector: {istio: ingress}
  servers: [{port: {number: 443, name: https, protocol: HTTPS}, hosts: [shop.example.com], tls: {mode: SIMPLE, credentialName: ${secret}}}]
`;
  const problemsOf = async (files: Readonly<Record<string, string>>, words = ["-f", "new.yaml"]): Promise<readonly string[]> => {
    const { report: data } = await report(words, await tree({ ...SHOP, ...files }));
    return data.problems.map(({ object, path, code }) => `${object} ${path} ${code}`);
  };

  it("between objects is told, and what was wrong before is not", async () => {
    const dangling = SHOP["etc/istio/conf/edge.yaml"].replace("host: cart", "host: nobody");
    const wrong = ["VirtualService/shop/edge spec.http[0].route[0].destination.host reference.host"];
    assert.deepEqual(await problemsOf({ "new.yaml": dangling }), wrong);
    assert.deepEqual(await problemsOf({ "new.yaml": SHOP["rule.yaml"], "etc/istio/conf/edge.yaml": dangling }), []);
    assert.deepEqual(await problemsOf({}, ["--remove", "service/shop/cart"]), wrong);
    const { out } = await istioctl(["diff", "-f", "new.yaml"], { cwd: await tree({ ...SHOP, "new.yaml": dangling }) });
    assert.match(
      out,
      /^(error|warning): VirtualService\/shop\/edge: spec\.http\[0\]\.route\[0\]\.destination\.host: .* \[reference\.host\]$/m,
    );
  });

  it("takes the certificates of the change into account, which are not shown", async () => {
    const [found] = await problemsOf({ "new.yaml": gateway("nothing") });
    assert.match(found ?? "", /^Gateway\/shop\/secure .*credentialName/);
    const { cert, key } = await (await createCertificateIssuer("ca")).issue("DNS:shop.example.com");
    const secret = JSON.stringify({
      ...{ apiVersion: "v1", kind: "Secret", metadata: { name: "cert", namespace: "shop" } },
      stringData: { "tls.crt": cert, "tls.key": key },
    });
    assert.deepEqual(await problemsOf({ "new.yaml": `${gateway("cert")}---\n${secret}\n` }), []);
  });

  it("knows which namespaces count, now and then", async () => {
    const mesh = "discoverySelectors: [{matchLabels: {kubernetes.io/metadata.name: bank}}]\n";
    const cwd = await tree({ ...SHOP, "mesh.yaml": mesh });
    const { report: data } = await report(["-f", "mesh.yaml"], cwd);
    assert.ok(resourcesOf(data).includes("cds removed outbound|80||cart.shop.svc.cluster.local"));
    assert.ok(!resourcesOf(data).some((line) => line.includes("removed outbound|80||teller.bank")));
    await writeFile(join(cwd, "etc/istio/mesh.yaml"), mesh);
    const { status, out } = await istioctl(["diff", "-f", "rule.yaml"], { cwd });
    assert.equal(status, 0);
    assert.match(out, /note: the namespace shop is not among the discoverySelectors: its objects are ignored/);
  });
});

describe("istioctl diff, when something is wrong", () => {
  const trouble = async (words: readonly string[], files: Readonly<Record<string, string>>): Promise<CliResult> =>
    istioctl(["diff", ...words], { cwd: await tree(files) });

  it.for([
    ["no configuration to compare with", ["-f", "a.yaml"], /^istioctl: there is no etc\/istio in .* ISTIO_HOME.*--base\n$/],
    ["no such directory", ["--base", "nowhere", "-f", "a.yaml"], /^istioctl: .*nowhere cannot be read: it does not exist\n$/],
    ["no such file", ["--base", ".", "-f", "b.yaml"], /^istioctl: b\.yaml cannot be read: it does not exist\n$/],
    ["nothing to compare", [], /name files with the change.*--help`\n$/],
    ["no such object", ["--base", ".", "--remove", "vs/shop/none"], /^istioctl: there is no VirtualService\/shop\/none in the current/],
    ["no such kind", ["--base", ".", "--remove", "thing/shop/none"], /there is no kind "thing"/],
    ["half a name", ["--base", ".", "--remove", "vs/none"], /KIND\/NAMESPACE\/NAME/],
    ["a node nobody understands", ["--base", ".", "-f", "a.yaml", "--proxy", "what~ever"], /node id "what~ever" is not of the form/],
  ] as const)("%s: one sentence, exit status 2", async ([, words, sentence]) => {
    const { status, out, err } = await trouble(words, { "a.yaml": SHOP["rule.yaml"] });
    assert.equal(status, 2);
    assert.equal(out, "");
    assert.match(err, sentence);
  });

  it("prints what is wrong with the new objects, with file and line", async () => {
    const bad = { ...SHOP, "bad.yaml": `${SHOP["rule.yaml"]}  subset: []\n---\na: [\n` };
    const { status, out } = await trouble(["-f", "bad.yaml"], bad);
    assert.equal(status, 2);
    assert.match(out, /^bad\.yaml:9: error: spec\.subset: .+ \[schema\.unknown-field\]$/m);
    assert.match(out, /^bad\.yaml:1\d: error: .+ \[document\.unreadable\]$/m);
    assert.match(out, /^2 documents checked, 2 invalid$/m);
  });

  it("compares with what is good of a current configuration that has faults, and says so", async () => {
    const { status, out } = await trouble(["-f", "rule.yaml"], { ...SHOP, "etc/istio/conf/bad.yaml": "a: [" });
    assert.equal(status, 1);
    assert.match(out, /note: the current configuration has 1 fault; `istioctl validate` lists them/);
  });

  it("takes the last good version of a broken document for the current one, and leaves what istiod keeps alone", async () => {
    const cwd = await tree({ ...SHOP, "etc/istio/conf/rule.yaml": SHOP["rule.yaml"].replace("host:", "hots:") });
    const dir = join(cwd, "var/lib/istio/last-good");
    const kept = createLastGood(dir, { log: silentLog });
    kept.put({
      ...{ source: `file:${join(cwd, "etc/istio/conf")}`, key: "DestinationRule/shop/reviews", scope: "rule.yaml", slot: "rule.yaml#0" },
      origin: { source: "files" },
      content: load(SHOP["rule.yaml"]),
    });
    await kept.flush();
    await writeFile(join(dir, "half-written.json.tmp"), "{");
    const before = await readdir(dir);
    const { status, out } = await istioctl(["diff", "-f", "rule.yaml"], { cwd });
    assert.equal(status, 0, out);
    assert.deepEqual(await readdir(dir), before);
  });

  it("says which patch of an EnvoyFilter would be left out, and shows no secret", async () => {
    const filter = `apiVersion: networking.istio.io/v1alpha3
kind: EnvoyFilter
metadata: {name: patch, namespace: shop}
spec:
  workloadSelector: {labels: {app: cart}}
  configPatches:
  - applyTo: CLUSTER
    match: {cluster: {name: "outbound|80||cart.shop.svc.cluster.local"}}
    patch:
      operation: MERGE
      value:
        transport_socket: &tls
          name: tls
          typed_config:
            "@type": type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.UpstreamTlsContext
            common_tls_context: {tls_certificates: [{private_key: {inline_string: hush-hush}, certificate_chain: {filename: /cert.pem}}]}
  - applyTo: CLUSTER
    patch:
      operation: ADD
      value:
        name: own
        connect_timeout: 1s
        transport_socket: *tls
`;
    const secret = "---\napiVersion: v1\nkind: Secret\nmetadata: {name: key, namespace: shop}\nstringData: {tls.key: hush-hush}\n";
    const { status, out } = await trouble(["-f", "new.yaml", "--full"], { ...SHOP, "new.yaml": `${filter}${secret}` });
    assert.equal(status, 1);
    assert.match(out, /^1 of 5 proxies touched/m);
    assert.match(out, /note: EnvoyFilter\/shop\/patch: configPatches\[0\] would be left out of outbound\|80\|\|cart/);
    assert.match(out, /inlineString: '?\[redacted\]/);
    assert.match(out, /filename: \/cert\.pem/);
    assert.match(out, /^Secret\/shop\/key added/m);
    assert.match(out, /note: Secrets reach proxies over SDS/);
    assert.doesNotMatch(out, /hush/);
  });
});

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
