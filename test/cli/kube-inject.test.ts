import assert from "node:assert/strict";
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { loadAll } from "js-yaml";
import { describe, it } from "vitest";
import type { Container } from "../../src/inject/pod.ts";
import { tempDir } from "../support/cleanup.ts";
import { istioctl } from "./cli-host.ts";

const DEPLOYMENT = `apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: shop}
spec:
  template:
    metadata: {annotations: {flag: "yes"}}
    spec: {containers: [{name: web, image: "web:1", args: ["010", "true"]}]}
`;
const OTHER = `# why this is here
apiVersion: v1
kind:   ConfigMap   # odd spacing
metadata: {name: c}
data:
  on: yes
`;

interface Workload {
  readonly spec: { readonly template: { readonly metadata: Record<string, never>; readonly spec: Record<string, readonly Container[]> } };
}

async function files(texts: Readonly<Record<string, string>>): Promise<string> {
  const dir = await tempDir();
  for (const [name, text] of Object.entries(texts)) await writeFile(join(dir, name), text);
  return dir;
}

const specOf = (text: string, index = 0) => (loadAll(text)[index] as Workload).spec.template.spec;

describe("istioctl kube-inject", () => {
  it("injects workloads and leaves every other line as it is", async () => {
    const text = `${OTHER}---\n${DEPLOYMENT}---\n# the end\n${OTHER}`;
    const { status, out, err } = await istioctl(["kube-inject", "-f", "-"], { stdin: text });
    assert.equal(status, 0, err);
    assert.ok(out.startsWith(`${OTHER}---\n`));
    assert.ok(out.endsWith(`---\n# the end\n${OTHER}`));
    const spec = specOf(out, 1);
    assert.deepEqual(
      spec.initContainers?.map(({ name }) => name),
      ["istio-init", "istio-proxy"],
    );
    assert.deepEqual(spec.containers?.[0]?.args, ["010", "true"]);
    // Texts that YAML 1.1 takes for numbers or flags stay texts for kubectl.
    assert.match(out, /- "010"\n\s+- "true"/);
    assert.match(out, /flag: "yes"/);
  });

  it("gives the same when its result is injected again", async () => {
    const once = (await istioctl(["kube-inject", "-f", "-"], { stdin: DEPLOYMENT })).out;
    const { out } = await istioctl(["kube-inject", "-f", "-"], { stdin: once });
    assert.deepEqual(loadAll(out), loadAll(once));
  });

  it("takes mesh, values, templates and revision, but no word of whom the webhook injects, from files, also from a ConfigMap, and writes to one", async () => {
    const cwd = await files({
      "web.yaml": DEPLOYMENT,
      "mesh.yaml": "proxyListenPort: 15101\n",
      "values.yaml": "global: {hub: example.com/mesh, tag: 1.2}\n",
      "injector.yaml": `kind: ConfigMap\napiVersion: v1\nmetadata: {name: istio-sidecar-injector}\ndata:\n  config: |\n    policy: disabled\n    neverInjectSelector: [{matchExpressions: [{key: never, operator: DoesNotExist}]}]\n    defaultTemplates: [sidecar, extra]\n    templates:\n      extra: "metadata: {labels: {team: '{{ .ObjectMeta.Namespace }}{{ .DeploymentMeta.Name }}'}}"\n`,
    });
    const flags = ["--meshConfigFile", "mesh.yaml", "--valuesFile", "values.yaml", "--injectConfigFile", "injector.yaml", "-r", "canary"];
    const { status, out, err } = await istioctl(["kube-inject", "-f", "web.yaml", "-o", "out.yaml", ...flags], { cwd });
    assert.equal(status, 0, err);
    assert.equal(out, "");
    const text = await readFile(join(cwd, "out.yaml"), "utf8");
    assert.match(text, /image: example.com\/mesh\/proxyv2:1.2/);
    assert.match(text, /team: web/);
    assert.match(text, /value: istiod-canary.istio-system.svc:15012/);
    assert.match(text, /- "15101"/);
  });

  it("makes a classic sidecar where native ones are switched off", async () => {
    const { out } = await istioctl(["kube-inject", "-f", "-"], { stdin: DEPLOYMENT, env: { ENABLE_NATIVE_SIDECARS: "false" } });
    assert.deepEqual(
      specOf(out).containers?.map(({ name }) => name),
      ["web", "istio-proxy"],
    );
  });

  it("says what it leaves alone, and what it cannot do, by line and name", async () => {
    const host = DEPLOYMENT.replace("spec: {containers", "spec: {hostNetwork: true, containers");
    const skipped = await istioctl(["kube-inject", "-f", "-"], { stdin: host });
    assert.deepEqual([skipped.status, skipped.out], [0, host]);
    assert.match(skipped.err, /Deployment web is not injected: it uses the network of its host/);
    const bad = DEPLOYMENT.replace('{flag: "yes"}', '{"sidecar.istio.io/interceptionMode": up}');
    const failed = await istioctl(["kube-inject", "-f", "-"], { stdin: `${OTHER}---\n${bad}` });
    assert.deepEqual([failed.status, failed.out], [1, ""]);
    assert.match(failed.err, /line 8: Deployment web: annotation sidecar.istio.io\/interceptionMode: must be REDIRECT/);
    const unknown = DEPLOYMENT.replace('{flag: "yes"}', '{"proxy.istio.io/config": "mixerAddress: m"}');
    assert.match((await istioctl(["kube-inject", "-f", "-"], { stdin: unknown })).err, /Deployment web: .*has no field "mixerAddress"/);
    const unquoted = await istioctl(["kube-inject", "-f", "-"], { stdin: DEPLOYMENT.replace('"yes"', "yes") });
    assert.match(unquoted.err, /metadata.annotations: the value of flag must be a text; put it in quotes/);
  });

  it("wants a file that is there, and settings that are right", async () => {
    assert.equal((await istioctl(["kube-inject"])).status, 2);
    assert.match((await istioctl(["kube-inject", "-f", "no.yaml"])).err, /no.yaml is no file/);
    const cwd = await files({ "web.yaml": DEPLOYMENT, "values.yaml": "global: {proxy: {statusPort: high}}", "mesh.yaml": "nosuch: 1" });
    assert.match(
      (await istioctl(["kube-inject", "-f", "web.yaml", "--valuesFile", "values.yaml"], { cwd })).err,
      /global.proxy.statusPort/,
    );
    assert.match((await istioctl(["kube-inject", "-f", "web.yaml", "--meshConfigFile", "mesh.yaml"], { cwd })).err, /nosuch/);
    assert.match((await istioctl(["kube-inject", "-f", "web.yaml", "--meshConfigFile", "not.yaml"], { cwd })).err, /not.yaml is no file/);
  });
});
