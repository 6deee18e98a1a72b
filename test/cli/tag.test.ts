import { once } from "node:events";
import { writeFile } from "node:fs/promises";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { json } from "node:stream/consumers";
import { loadAll } from "js-yaml";
import { describe, expect, it, onTestFinished } from "vitest";
import { selectsLabels } from "../../src/base/labels.ts";
import type { KubeObject } from "../../src/kube/resource-type.ts";
import { type ConfigurationInput, mutatingWebhookConfiguration } from "../../src/webhooks/webhook-configurations.ts";
import { tempDir } from "../support/cleanup.ts";
import { type CliResult, istioctl } from "./cli-host.ts";

const MUTATING = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations";
const VALIDATING = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations";

const injector = (revision: string, fields: Partial<ConfigurationInput> = {}): KubeObject =>
  mutatingWebhookConfiguration({
    revision,
    namespace: "istio-system",
    place: { service: { name: `istiod-${revision}`, namespace: "istio-system" } },
    caBundle: `roots of ${revision}`,
    failClosed: true,
    enableNamespacesByDefault: false,
    ...fields,
  });

const namespace = (name: string, labels: Readonly<Record<string, string>>): KubeObject => ({
  apiVersion: "v1",
  kind: "Namespace",
  metadata: { name, labels },
});

/** `a=b`, `a` and `!a`, joined by commas. */
const selector = (text: string) => ({
  matchLabels: {},
  matchExpressions: text
    .split(",")
    .filter((one) => one !== "")
    .map((one) => {
      const [key = "", value] = one.replace("!", "").split("=");
      const values = value === undefined ? [] : [value];
      return { key, operator: one.startsWith("!") ? "DoesNotExist" : value === undefined ? "Exists" : "In", values };
    }),
});

/** An API server that keeps what is applied and deleted, and istioctl beside it. */
async function startRig(...objects: readonly KubeObject[]) {
  const kept = new Map(objects.map((one) => [`${one.kind === "Namespace" ? "/api/v1/namespaces" : MUTATING}/${one.metadata.name}`, one]));
  const server = createServer(async (request, response) => {
    const { pathname, searchParams } = new URL(request.url ?? "", "http://server");
    if (request.method === "PATCH") kept.set(pathname, (await json(request)) as KubeObject);
    const wanted = selector(searchParams.get("labelSelector") ?? "");
    const items = [...kept].filter(([path, one]) => path.startsWith(`${pathname}/`) && selectsLabels(wanted, one.metadata.labels ?? {}));
    const body = kept.get(pathname) ?? { kind: "List", metadata: { resourceVersion: "1" }, items: items.map(([, one]) => one) };
    if (request.method === "DELETE") kept.delete(pathname);
    response.setHeader("content-type", "application/json").end(JSON.stringify(body));
  }).listen(0, "127.0.0.1");
  onTestFinished(() => void server.close());
  await once(server, "listening");
  const cwd = await tempDir();
  const address = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const config = {
    contexts: [{ name: "a", context: { cluster: "a", user: "a" } }],
    "current-context": "a",
    clusters: [{ name: "a", cluster: { server: address } }],
    users: [{ name: "a", user: {} }],
  };
  await writeFile(join(cwd, "kubeconfig"), JSON.stringify(config));
  const tag = (words: string): Promise<CliResult> => istioctl(["tag", ...words.split(" "), "--kubeconfig", "kubeconfig"], { cwd });
  return { kept, tag };
}

const clientConfigs = (object: KubeObject | undefined): readonly unknown[] =>
  ((object?.webhooks ?? []) as readonly { readonly clientConfig: unknown; readonly failurePolicy: string }[]).map(
    ({ clientConfig, failurePolicy }) => ({ ...(clientConfig as object), failurePolicy }),
  );

const leadsTo = (revision: string) => ({
  service: { name: `istiod-${revision}`, namespace: "istio-system", path: "/inject", port: 443 },
  caBundle: Buffer.from(`roots of ${revision}`).toString("base64"),
  failurePolicy: "Fail",
});

describe("istioctl tag", () => {
  it("sets a tag that leads where its revision does, and moves it only where told to", async () => {
    const { tag, kept } = await startRig(injector("one"), injector("two"));
    const made = () => kept.get(`${MUTATING}/istio-revision-tag-prod`);
    expect(await tag("set prod --revision one")).toMatchObject({ status: 0, out: expect.stringContaining("prod leads to revision one") });
    expect(made()?.metadata.labels).toMatchObject({ "istio.io/rev": "one", "istio.io/tag": "prod" });
    expect(clientConfigs(made())).toEqual([leadsTo("one"), leadsTo("one")]);
    expect(await tag("set prod --revision two")).toMatchObject({ status: 2, err: expect.stringContaining("--overwrite moves it") });
    expect(clientConfigs(made())).toContainEqual(leadsTo("one"));
    expect((await tag("set prod --revision two --overwrite")).status).toBe(0);
    expect(clientConfigs(made())).toEqual([leadsTo("two"), leadsTo("two")]);
    expect((await tag("set prod --revision two")).status).toBe(0);
  });

  it("leaves one configuration of a tag, whatever it was called before", async () => {
    const { tag, kept } = await startRig(injector("one"));
    await tag("set prod --revision one");
    const other = kept.get(`${MUTATING}/istio-revision-tag-prod`);
    if (other !== undefined) kept.set(`${MUTATING}/another`, { ...other, metadata: { ...other.metadata, name: "another" } });
    await tag("set prod --revision one");
    expect([...kept.keys()].filter((path) => path.startsWith(MUTATING)).sort()).toEqual([
      `${MUTATING}/istio-revision-tag-prod`,
      `${MUTATING}/istio-sidecar-injector-one`,
    ]);
  });

  it("leads outside of the cluster where the revision does, and tells control planes apart by their namespace", async () => {
    const url = { place: { url: "https://host:15017" } };
    const far = { ...url, namespace: "mesh", injectionPath: "/inject/cluster/far/net/two" };
    const { tag, kept } = await startRig(injector("one", url), injector("one", far), injector("two", url));
    await tag("set prod --revision one -i mesh");
    const [first] = clientConfigs(kept.get(`${MUTATING}/istio-revision-tag-prod-mesh`));
    expect(first).toMatchObject({ url: "https://host:15017/inject/cluster/far/net/two" });
    expect(await tag("set other --revision one -i elsewhere")).toMatchObject({
      status: 2,
      err: expect.stringContaining("--istioNamespace"),
    });
    expect((await tag("set other --revision two -i elsewhere")).status).toBe(0);
  });

  it("of the name `default` judges objects as well; beside a revision of the name there is none", async () => {
    const { tag, kept } = await startRig(injector("one"));
    await tag("set default --revision one");
    expect(kept.get(`${VALIDATING}/istiod-default-validator`)?.metadata.labels).toMatchObject({ "istio.io/rev": "one" });
    expect((await tag("remove default")).status).toBe(0);
    expect([...kept.keys()]).toEqual([`${MUTATING}/istio-sidecar-injector-one`]);
    const beside = await startRig(injector("default"), injector("one"));
    expect(await beside.tag("set default --revision one")).toMatchObject({
      status: 2,
      err: expect.stringContaining('a revision "default"'),
    });
  });

  it("generates the same without putting it in place", async () => {
    const { tag, kept } = await startRig(injector("one"));
    const { out } = await tag("generate default --revision one");
    expect(kept.size).toBe(1);
    await tag("set default --revision one");
    expect(loadAll(out)).toEqual([...kept.values()].slice(1));
  });

  it("lists tags with the namespaces they inject, and removes one that is used only where told to", async () => {
    const { tag, kept } = await startRig(
      injector("one"),
      namespace("b", { "istio.io/rev": "prod" }),
      namespace("a", { "istio.io/rev": "prod" }),
      namespace("older", { "istio.io/rev": "prod", "istio-injection": "disabled" }),
      namespace("c", { "istio-injection": "enabled" }),
    );
    for (const name of ["prod", "default"]) await tag(`set ${name} --revision one`);
    expect((await tag("list")).out).toBe("TAG         REVISION     NAMESPACES\ndefault     one          c\nprod        one          a,b\n");
    expect(JSON.parse((await tag("list -o json")).out)[1]).toEqual({ tag: "prod", revision: "one", namespaces: ["a", "b"] });
    expect(await tag("remove prod")).toMatchObject({ status: 2, err: expect.stringContaining("new pods of a, b would have no sidecar") });
    expect((await tag("remove prod -y")).status).toBe(0);
    expect(kept.has(`${MUTATING}/istio-revision-tag-prod`)).toBe(false);
    expect(await tag("remove prod -y")).toMatchObject({ status: 1, err: 'istioctl: there is no tag "prod"\n' });
  });

  it("says what is missing", async () => {
    const odd = { ...injector("odd"), webhooks: [{ clientConfig: { url: "https://host/elsewhere" } }] };
    const { tag } = await startRig(injector("one"), odd);
    const table: readonly [words: string, status: number, says: string][] = [
      ["set prod", 2, "--revision"],
      ["set", 2, "name one tag"],
      ["set Prod --revision one", 2, "cannot be a tag"],
      ["set prod --revision gone", 1, 'no revision "gone"'],
      ["set prod --revision odd", 1, "does not lead to /inject"],
      ["list prod", 2, "none is named"],
    ];
    for (const [words, status, says] of table)
      expect([words, await tag(words)]).toMatchObject([words, { status, err: expect.stringContaining(says) }]);
    const none = await istioctl(["tag", "list"], { env: { HOME: await tempDir() } });
    expect(none).toMatchObject({ status: 1, err: expect.stringContaining("there is no cluster to ask") });
  });
});
