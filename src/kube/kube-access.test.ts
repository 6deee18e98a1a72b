import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { manualClock } from "../../test/support/manual-clock.ts";
import { findKubeAccess, remoteKubeAccess } from "./kube-access.ts";

let dir = "";
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), "kube-"));
});
afterEach(() => rmSync(dir, { recursive: true }));

const write = (name: string, text: string): string => {
  writeFileSync(join(dir, name), text);
  return join(dir, name);
};
const find = (env: Readonly<Record<string, string>>, clock = manualClock()) =>
  findKubeAccess({ env: { HOME: join(dir, "nowhere"), ...env }, clock, accountDir: join(dir, "account") });
const headerOf = async (access: Awaited<ReturnType<typeof find>>): Promise<string | undefined> =>
  (await access?.credentials.current())?.headers.authorization?.reveal();

const config = ({ cluster = "{server: https://one.test:6443}", user = "{token: t1}", context = "one" } = {}): string => `
current-context: ${context}
clusters: [{name: one, cluster: ${cluster}}]
users: [{name: me, user: ${user}}]
contexts: [{name: one, context: {cluster: one, user: me, namespace: mesh}}]
`;

describe("finding a cluster", () => {
  it("finds none where nothing says where one is", async () => {
    expect(await find({})).toBeUndefined();
    expect(await find({ KUBECONFIG: join(dir, "absent") })).toBeUndefined();
  });

  it("prefers the pod's own, then KUBECONFIG, then KUBE_CONFIG, then the home directory", async () => {
    mkdirSync(join(dir, "account"));
    mkdirSync(join(dir, "home/.kube"), { recursive: true });
    write("account/token", "pod-token\n");
    write("account/ca.crt", "roots");
    write("account/namespace", "istio-system");
    write("home/.kube/config", config({ cluster: "{server: https://home.test}" }));
    const a = write("a", config({ cluster: "{server: https://a.test}" }));
    const b = write("b", config({ cluster: "{server: https://b.test}" }));
    const env = { HOME: join(dir, "home"), KUBECONFIG: a, KUBE_CONFIG: b };
    const pod = await find({ ...env, KUBERNETES_SERVICE_HOST: "fd00::1", KUBERNETES_SERVICE_PORT: "443" });
    expect([pod?.server, pod?.namespace, pod?.inPod, await pod?.ca?.read(), await headerOf(pod)]).toEqual([
      "https://[fd00::1]:443",
      "istio-system",
      true,
      "roots",
      "Bearer pod-token",
    ]);
    expect((await find(env))?.server).toBe("https://a.test");
    expect((await find({ ...env, KUBECONFIG: "" }))?.server).toBe("https://b.test");
    expect((await find({ HOME: join(dir, "home") }))?.server).toBe("https://home.test");
  });

  it("joins files: the first to name a thing decides; KUBE_CONTEXT chooses", async () => {
    const first = write("first", config());
    const second = write(
      "second",
      `
current-context: two
clusters: [{name: one, cluster: {server: https://not.this}}, {name: two, cluster: {server: https://two.test/api/, tls-server-name: kubernetes, insecure-skip-tls-verify: true}}]
users: [{name: basic, user: {username: u, password: p}}]
contexts: [{name: two, context: {cluster: two, user: basic}}]
`,
    );
    const files = `${first}:${join(dir, "absent")}:${second}`;
    const one = await find({ KUBECONFIG: files });
    expect([one?.context, one?.server, one?.namespace, await headerOf(one)]).toEqual(["one", "https://one.test:6443", "mesh", "Bearer t1"]);
    const two = await find({ KUBECONFIG: files, KUBE_CONTEXT: "two" });
    expect([two?.server, two?.serverName, two?.insecure, await headerOf(two)]).toEqual([
      "https://two.test/api",
      "kubernetes",
      true,
      "Basic dTpw",
    ]);
  });

  it.each([
    ["no such context", config({ context: "three" }), /has no context "three"/],
    ["no server", config({ cluster: "{}" }), /no usable server address/],
    ["a proxy", config({ cluster: "{server: https://x.test, proxy-url: http://p}" }), /proxy-url, which is not supported/],
    ["an auth provider", config({ user: "{auth-provider: {name: gcp}}" }), /auth-provider/],
    ["no YAML", "a: [", /cannot be read/],
    ["a plugin that needs a terminal", config({ user: PLUGIN("interactiveMode: Always") }), /needs a terminal/],
  ])("says what is wrong with %s", async (_, text, message) => {
    await expect(find({ KUBECONFIG: write("config", text) })).rejects.toThrow(message);
  });
});

function PLUGIN(more: string, command = "plugin"): string {
  return `{exec: {apiVersion: client.authentication.k8s.io/v1, command: ${command}, ${more}}}`;
}

describe("credentials", () => {
  it("follow the token file, relative to the kubeconfig, and do without it for a moment", async () => {
    const clock = manualClock();
    write("token", "first");
    const access = await find({ KUBECONFIG: write("config", config({ user: "{tokenFile: token}" })) }, clock);
    expect(await headerOf(access)).toBe("Bearer first");
    write("token", "second");
    expect(await headerOf(access)).toBe("Bearer first");
    clock.advance(11_000);
    expect(await headerOf(access)).toBe("Bearer second");
    write("token", "third");
    access?.credentials.refused();
    expect(await headerOf(access)).toBe("Bearer third");
    rmSync(join(dir, "token"));
    clock.advance(11_000);
    expect(await headerOf(access)).toBe("Bearer third");
  });

  it("come from a program until they end, and again when they were refused", async () => {
    const clock = manualClock();
    const ends = new Date(clock.now() + 60_000).toISOString();
    const script = `#!/bin/sh
echo run >> ${dir}/runs
printf '{"kind":"ExecCredential","status":{"token":"%s-%s-%s","expirationTimestamp":"${ends}"}}' "$1" "$WHO" "$(wc -l < ${dir}/runs | tr -d ' ')"
`;
    writeFileSync(join(dir, "plugin"), script, { mode: 0o755 });
    const user = PLUGIN("args: [x], env: [{name: WHO, value: me}]", "./plugin");
    const access = await find({ KUBECONFIG: write("config", config({ user })) }, clock);
    expect(await Promise.all([headerOf(access), headerOf(access)])).toEqual(["Bearer x-me-1", "Bearer x-me-1"]);
    clock.advance(40_000);
    expect(await headerOf(access)).toBe("Bearer x-me-2");
    access?.credentials.refused();
    expect(await headerOf(access)).toBe("Bearer x-me-3");
  });

  it("tell what to install where the program is missing", async () => {
    const user = PLUGIN("installHint: get it", "/no/such/program");
    const access = await find({ KUBECONFIG: write("config", config({ user })) });
    await expect(headerOf(access)).rejects.toMatchObject({ code: "kubernetes_unusable", hint: "get it" });
  });

  it("never show themselves", async () => {
    const access = await find({ KUBECONFIG: write("config", config()) });
    expect(JSON.stringify(await access?.credentials.current())).not.toContain("t1");
  });
});

describe("a kubeconfig of others", () => {
  const remote = (text: string) => remoteKubeAccess(text, { clock: manualClock(), title: "Secret istio-system/far" });

  it("is used for its addresses, certificates and tokens", async () => {
    const access = remote(config({ cluster: '{server: "https://far.test", certificate-authority-data: cm9vdHM=}' }));
    expect([access.server, await access.ca?.read()]).toEqual(["https://far.test", "roots"]);
  });

  it.each([
    ["runs no program", config({ user: PLUGIN("args: []") }), /names a program to run/],
    ["reads no token file", config({ user: "{tokenFile: /etc/passwd}" }), /may not name files/],
    ["reads no key file", config({ user: "{client-certificate: /etc/c, client-key: /etc/k}" }), /may not name files/],
    ["reads no root file", config({ cluster: "{server: https://x.test, certificate-authority: /etc/passwd}" }), /may not name files/],
  ])("%s", (_, text, message) => {
    expect(() => remote(text)).toThrow(message);
  });
});
