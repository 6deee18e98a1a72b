import { access, link, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import type { MeshState } from "../../src/debug/api-types.ts";
import { call, tally } from "../support/calls.ts";
import { tempDir } from "../support/cleanup.ts";
import { runIstiod, startIstiod } from "../support/istiod.ts";
import { rule, shopRoutes } from "../support/shop.ts";
import { ROUTES_FILE, startShop } from "../support/shop-mesh.ts";
import { eventually } from "../support/wait.ts";

describe("a bad mesh.yaml", () => {
  it.for([
    ["a field that does not exist", "enableTracing: true\nacessLogFile: /dev/stdout\n", /mesh\.yaml:2: .*acessLogFile/],
    ["a value of the wrong type", "connectTimeout: soon\n", /mesh\.yaml:1: .*connectTimeout/],
    ["text that is no YAML", "a: [\n", /mesh\.yaml:\d+/],
    ["an include outside etc/istio", "include: [../../secret.yaml]\n", /mesh\.yaml:1: .*include/],
  ] as const)("at start (%s) is one sentence and exit status 1", async ([, text, sentence]) => {
    const { status, log, said } = await runIstiod({ files: { "mesh.yaml": text } });
    expect(status).toBe(1);
    expect(log.trim().split("\n")).toHaveLength(1);
    expect(log).toMatch(sentence);
    expect(said).toBe("");
  });

  it("on reload leaves the last good one in force, and shows", async () => {
    const stranger = "nobody.example.com";
    const good = "outboundTrafficPolicy: {mode: REGISTRY_ONLY}\ntrustDomain: shop.example\n";
    const shop = await startShop({ istiod: { files: { "mesh.yaml": good } } });
    const { istiod } = shop;
    const state = async (): Promise<MeshState> => (await (await istiod.debug("/debug/mesh")).json()) as MeshState;
    const failed = (): Promise<number> => istiod.metric("istiod_mesh_reload_failed");
    expect((await call({ ...shop.target, host: stranger })).status).toBe(502);
    expect(await failed()).toBe(0);

    await istiod.write("mesh.yaml", "outboundTrafficPolicy: {mode: ANYTHING_GOES}\n");
    await eventually("the metric shows it", async () => (await failed()) === 1);
    expect((await state()).reloadProblems).toMatchObject([{ line: 1 }]);
    expect((await state()).mesh).toMatchObject({ trustDomain: "shop.example" });
    await eventually("the log says so", () => /last good one stays in force.*mesh\.yaml:1/.test(istiod.log()));
    const ready = await fetch(`http://127.0.0.1:${istiod.httpPort}/ready?verbose`);
    expect(ready.status).toBe(200);
    expect(await ready.json()).toMatchObject({
      ready: true,
      checks: expect.arrayContaining([
        expect.objectContaining({ name: "mesh.yaml", ok: false, detail: expect.stringContaining("mesh.yaml:1") }),
      ]),
    });
    expect((await call({ ...shop.target, host: stranger })).status).toBe(502);

    await istiod.write("mesh.yaml", good);
    await eventually("the metric is calm", async () => (await failed()) === 0);
    expect((await state()).reloadProblems).toEqual([]);
  });
});

describe("a log that nobody reads any more", () => {
  it("costs nothing: what would be said takes effect, and the end is as ever", async () => {
    const istiod = await startIstiod();
    istiod.hangUp();
    for (const trustDomain of ["one.example", "two.example"]) {
      await istiod.write("mesh.yaml", `trustDomain: ${trustDomain}\nenv: {PILOT_${trustDomain.slice(0, 3)}: x}\n`);
      await eventually("it is in force", async () => (await (await istiod.debug("/debug/mesh")).text()).includes(trustDomain));
    }
    expect(await istiod.stop()).toBe(0);
  });
});

describe("what mesh.yaml says in vain", () => {
  it("is told in the log with its line, once, and on the page of problems, and costs nothing else", async () => {
    const first = "env: {PILOT_NONSENSE: x}\n";
    const istiod = await startIstiod({ files: { "mesh.yaml": first } });
    const told = (name: string): number => istiod.log().split(name).length - 1;
    const page = async (): Promise<string> => (await istiod.debug("/debug/problems")).text();
    await eventually("the log tells", () => /mesh\.yaml:1: env\.PILOT_NONSENSE: is no setting/.test(istiod.log()));
    expect(await page()).toContain("env.PILOT_NONSENSE");
    await istiod.write("mesh.yaml", `${first}  # again\ncaCertificates: [{spiffeBundleUrl: "https://example.com"}]\n`);
    await eventually("the log tells of what is new", () => told("spiffeBundleUrl") === 1);
    expect(told("PILOT_NONSENSE")).toBe(1);
    await istiod.write("mesh.yaml", "trustDomain: mesh.example\n");
    await eventually("the page is empty", async () => JSON.parse(await page()).length === 0);
  });
});

describe("a good mesh.yaml on reload", () => {
  it("takes effect in Envoy: access log and policy for strangers", async () => {
    const shop = await startShop({ http: rule("v1") });
    const accessLog = join(await tempDir(), "access.log");
    await expect(access(accessLog)).rejects.toThrow();
    await shop.istiod.write("mesh.yaml", `accessLogFile: ${accessLog}\noutboundTrafficPolicy: {mode: REGISTRY_ONLY}\n`);
    await eventually("strangers are refused", async () => (await call({ ...shop.target, host: "nobody.example.com" })).status === 502);
    await eventually("the request is logged", async () => {
      await call({ ...shop.target, path: "/logged" });
      return (await readFile(accessLog, "utf8")).includes("/logged");
    });
    await shop.proxy.assertNothingRejected();
  });

  it("is read at once on SIGHUP, and so are all other files, where nothing else tells of their changes", async () => {
    const shop = await startShop({
      http: rule("v1"),
      istiod: {
        files: { "mesh.yaml": "trustDomain: one.example\n" },
        // Files are looked at now and then anyway, which nobody could tell from what the signal does.
        env: { NODE_OPTIONS: `--import=${join(import.meta.dirname, "../support/no-long-waits.ts")}` },
      },
    });
    const { istiod } = shop;
    expect(await tally(10, shop.target)).toEqual({ v1: 10 });
    // Written through another name in a directory that nobody watches.
    const elsewhere = async (file: string, text: string): Promise<void> => {
      const other = join(await tempDir(), "other");
      await link(join(istiod.home, "etc/istio", file), other);
      await writeFile(other, text);
    };
    await elsewhere(ROUTES_FILE, shopRoutes(rule("v2")));
    await elsewhere("mesh.yaml", "trustDomain: two.example\n");
    expect(await tally(10, shop.target)).toEqual({ v1: 10 });
    process.kill(istiod.pid(), "SIGHUP");
    await eventually("the rule holds", async () => (await tally(10, shop.target)).v2 === 10);
    await eventually("so does the mesh", async () => (await (await istiod.debug("/debug/mesh")).text()).includes("two.example"));
  });

  it("adds and removes directories of configuration", async () => {
    const shop = await startShop({ istiod: { files: { "more/routes.yaml": shopRoutes(rule("v2")) } } });
    expect(Object.keys(await tally(40, shop.target)).sort()).toEqual(["v1", "v2"]);

    const own = "fs://./etc/istio/conf";
    await shop.istiod.write("mesh.yaml", `configSources: [{address: "${own}"}, {address: "fs://./etc/istio/more"}]\n`);
    await eventually("the rule of the new directory holds", async () => (await tally(20, shop.target)).v2 === 20);
    await shop.istiod.write("more/routes.yaml", shopRoutes(rule("v1")));
    await eventually("the new directory is watched", async () => (await tally(20, shop.target)).v1 === 20);
    await shop.istiod.write("mesh.yaml", `configSources: [{address: "${own}"}]\n`);
    await eventually("the rule is gone with its directory", async () => Object.keys(await tally(20, shop.target)).length === 2);
  });

  it("says what waits for a restart", async () => {
    const shop = await startShop();
    await shop.istiod.write("mesh.yaml", "listen: {legacyGrpcAddr: 127.0.0.1:1}\n");
    const waiting = await eventually("the field is shown", async () => {
      const { needsRestart } = (await (await shop.istiod.debug("/debug/mesh")).json()) as MeshState;
      return needsRestart.length > 0 && needsRestart;
    });
    expect(waiting).toMatchObject([{ field: "listen.legacyGrpcAddr" }]);
    expect((await call(shop.target)).status).toBe(200);
  });
});
