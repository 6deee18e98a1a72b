import assert from "node:assert/strict";
import { readdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { load } from "js-yaml";
import { describe, it } from "vitest";
import { silentLog } from "../../src/base/log.ts";
import { createLastGood } from "../../src/config/store/last-good.ts";
import { createCertificateIssuer } from "../support/certificates.ts";
import { type CliResult, istioctl } from "./cli-host.ts";
import { pod, proxiesOf, report, resourcesOf, SHOP, service, tree } from "./diff-shop.ts";

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
