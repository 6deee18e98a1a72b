import { readdir, readFile, stat } from "node:fs/promises";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import { createRegistry, fromBinary, toBinary, toJsonString } from "@bufbuild/protobuf";
import { anyUnpack, StringValueSchema } from "@bufbuild/protobuf/wkt";
import { describe, expect, it } from "vitest";
import { tempDir } from "../../../test/support/cleanup.ts";
import { documentServer } from "../../../test/support/document-server.ts";
import { manualClock } from "../../../test/support/manual-clock.ts";
import { artifactLayer, digestOf, imageLayer, ociRegistry, tarOf } from "../../../test/support/oci-registry.ts";
import { headerModule } from "../../../test/support/wasm-module.ts";
import { webProxy } from "../../../test/support/web-proxy.ts";
import { rangesIn } from "../../base/blocked-address.ts";
import { systemClock } from "../../base/clock.ts";
import { NO_PROXIES, type ProxyRules } from "../../base/environment-proxy.ts";
import { buildMissingExtension, buildWasmExtension, type WasmInput } from "../../envoy/extension/wasm.ts";
import { TypedExtensionConfigSchema } from "../../gen/envoy/config/core/v3/extension_pb.js";
import { WasmSchema } from "../../gen/envoy/extensions/filters/http/wasm/v3/wasm_pb.js";
import { sha256Of } from "./fetch-image.ts";
import { findModule } from "./fetch-module.ts";
import { readImageReference } from "./image-reference.ts";
import { openModuleStore } from "./module-store.ts";
import { loginFor, readChallenge } from "./registry-credentials.ts";
import { type RemoteModule, readRemoteModule, standIn, withLocalModule } from "./remote-module.ts";
import { unpackModule } from "./unpack.ts";

const ranges = (text: string) => {
  const found = rangesIn(text);
  return typeof found === "string" ? [] : found;
};
const MODULE = headerModule("x-wasm", "yes");
const MOST = 1_000_000;
const remote = (url: string, more: Partial<RemoteModule> = {}): RemoteModule => ({
  filter: "http",
  url,
  sha256: "",
  timeoutMs: 5_000,
  failOpen: false,
  pullSecret: undefined,
  pullPolicy: undefined,
  resourceVersion: "1",
  ...more,
});
interface Fetching {
  readonly attempts?: number;
  readonly proxies?: ProxyRules;
}

const find = (module: RemoteModule, insecure: readonly string[] = [], { attempts = 1, proxies = NO_PROXIES }: Fetching = {}) =>
  findModule(module, AbortSignal.timeout(module.timeoutMs ?? 5_000), {
    env: {},
    attempts,
    mostBytes: MOST,
    insecureHosts: new Set(insecure),
    proxies,
    blockedRanges: ranges("127.0.0.9/32"),
    clock: systemClock,
  });

describe("a resource that names a module elsewhere", () => {
  const input: WasmInput = {
    name: "ext",
    plugin: "shop.it",
    filter: "http",
    rootId: "root",
    configuration: '{"a":1}',
    code: { url: "oci://images.test/it:v1", sha256: "" },
    environment: { ISTIO_META_WASM_IMAGE_PULL_POLICY: "Always", ISTIO_META_WASM_PLUGIN_RESOURCE_VERSION: "7", OWN: "kept" },
    hostEnvironment: ["HOME"],
    onFailure: "open",
  };
  const bytes = (one: WasmInput): Uint8Array => toBinary(TypedExtensionConfigSchema, buildWasmExtension(one));

  it("is read", () => {
    expect(readRemoteModule(bytes(input))).toEqual({
      filter: "http",
      url: "oci://images.test/it:v1",
      sha256: "",
      timeoutMs: 30_000,
      failOpen: true,
      pullSecret: undefined,
      pullPolicy: "Always",
      resourceVersion: "7",
    });
    expect(readRemoteModule(bytes({ ...input, onFailure: "close" }))?.failOpen).toBe(false);
    expect(readRemoteModule(bytes({ ...input, filter: "network" }))?.filter).toBe("network");
    expect(readRemoteModule(bytes({ ...input, code: { file: "/it.wasm" } }))).toBeUndefined();
  });

  it("names a file after that, and nothing that was for the agent", () => {
    const local = fromBinary(TypedExtensionConfigSchema, withLocalModule(bytes(input), "/cache/it.wasm"));
    const expected = buildWasmExtension({ ...input, code: { file: "/cache/it.wasm" }, environment: { OWN: "kept" } });
    const json = ({ typedConfig }: typeof local): string => {
      const wasm = typedConfig === undefined ? undefined : anyUnpack(typedConfig, WasmSchema);
      return wasm === undefined ? "" : toJsonString(WasmSchema, wasm, { registry: createRegistry(StringValueSchema) });
    };
    expect(local.name).toBe("ext");
    expect(json(local)).toBe(json(expected));
  });

  it("has a stand-in that lets all through, or nothing", () => {
    for (const filter of ["http", "network"] as const)
      for (const onFailure of ["open", "close"] as const) {
        const stands = standIn(bytes({ ...input, filter, onFailure }), { filter, failOpen: onFailure === "open" });
        const expected = toBinary(TypedExtensionConfigSchema, buildMissingExtension({ name: "ext", filter, onFailure }));
        expect(stands.equals(expected)).toBe(true);
      }
  });
});

describe("names of images", () => {
  const digest = "a".repeat(64);
  it.each([
    ["images.test/a/b:v1", "images.test", "a/b", "v1"],
    ["localhost:5000/it", "localhost:5000", "it", "latest"],
    ["docker.io/it:v1", "registry-1.docker.io", "library/it", "v1"],
    ["team/it", "registry-1.docker.io", "team/it", "latest"],
    [`images.test/it:v1@sha256:${digest}`, "images.test", "it", `sha256:${digest}`],
  ])("%s", (text, registry, repository, reference) => expect(readImageReference(text)).toMatchObject({ registry, repository, reference }));
  for (const bad of ["", "images.test/", "images.test/../x", "images.test/A", "images.test/it@sha256:ab", "images.test/it@md5:00"])
    it(`refuse ${JSON.stringify(bad)}`, () => expect(() => readImageReference(bad)).toThrow(/no name of an image/));
});

describe("logins", () => {
  it("are found by the registry", () => {
    const auth = Buffer.from("ann:pa:ss").toString("base64");
    const config = JSON.stringify({ auths: { "https://images.test/v2/": { auth }, "other.test": { username: "bob", password: "b" } } });
    expect(loginFor("images.test", config)).toEqual({ user: "ann", password: "pa:ss" });
    expect(loginFor("other.test", config)).toEqual({ user: "bob", password: "b" });
    expect(loginFor("nobody.test", config)).toBeUndefined();
    expect(() => loginFor("x", "secret stuff")).toThrow("not the JSON that Docker writes");
  });

  it("go only where a registry may send for a token", () => {
    const registry = new URL("https://images.test");
    const realm = (url: string) => readChallenge(`Bearer realm="${url}",service="s"`, registry);
    expect(realm("https://auth.images.test/token")).toMatchObject({ kind: "bearer", service: "s" });
    for (const bad of [
      "http://auth.images.test/token",
      "file:///etc/passwd",
      "https://10.0.0.1/token",
      "https://[fd00::1]/token",
      "nonsense",
    ])
      expect(() => realm(bad)).toThrow();
    expect(readChallenge("Basic realm=x", registry)).toEqual({ kind: "basic" });
  });
});

describe("modules", () => {
  it("are unpacked from gzip and tar, within limits", async () => {
    for (const packed of [MODULE, gzipSync(MODULE), tarOf("a.wasm", MODULE), gzipSync(tarOf("a.wasm", MODULE))])
      expect(await unpackModule(packed, MOST)).toEqual(MODULE);
    const bomb = gzipSync(Buffer.concat([MODULE, Buffer.alloc(MOST)]));
    for (const packed of [bomb, tarOf("a.wasm", bomb), gzipSync(bomb)])
      await expect(unpackModule(packed, MOST)).rejects.toMatchObject({ code: "ERR_BUFFER_TOO_LARGE" });
    await expect(unpackModule(Buffer.from("<html>"), MOST)).rejects.toThrow("no Wasm module");
    await expect(unpackModule(tarOf("other", MODULE), MOST, "plugin.wasm")).rejects.toThrow("no plugin.wasm");
  });

  it("come over HTTP, not from this machine unless that is said, not for ever and not without end", async () => {
    const server = await documentServer();
    const host = `127.0.0.1:${server.port}`;
    server.documents.set("/it.wasm", MODULE);
    const found = await find(remote(`http://${host}/it.wasm`), [host]);
    expect([found.digests, await found.bytes()]).toEqual([[sha256Of(MODULE)], MODULE]);
    for (const url of [`http://${host}/it.wasm`, `http://localhost:${server.port}/it.wasm`])
      await expect(find(remote(url))).rejects.toThrow("which is not called");
    for (const url of ["http://169.254.169.254/latest", "http://127.0.0.9/it.wasm", "http://[fe80::1]/it.wasm"])
      await expect(find(remote(url), ["*"])).rejects.toThrow("which is not called");
    await expect(find(remote("file:///etc/passwd"))).rejects.toThrow("are not fetched from");

    server.documents.set("/away", (_, response) => void response.writeHead(302, { location: "http://[::1]/it.wasm" }).end());
    await expect(find(remote(`http://${host}/away`), [host])).rejects.toThrow("which is not called");
    server.documents.set("/endless", (_, response) => void response.write(Buffer.alloc(MOST + 1)));
    await expect(find(remote(`http://${host}/endless`), [host])).rejects.toThrow("larger than");
    server.documents.set("/silent", () => {});
    await expect(find(remote(`http://${host}/silent`, { timeoutMs: 200 }), [host])).rejects.toThrow("does not answer in time");
    let asked = 0;
    server.documents.set("/flaky", (_, response) => void (++asked === 1 ? response.writeHead(503).end() : response.end(MODULE)));
    expect((await find(remote(`http://${host}/flaky`), [host], { attempts: 2 })).digests).toEqual([sha256Of(MODULE)]);
  });

  it("come through the proxy of the environment", async () => {
    const server = await documentServer();
    server.documents.set("/it.wasm", MODULE);
    const { url, asked } = await webProxy(server.port);
    const proxies = { httpProxy: url, httpsProxy: "", noProxy: "" };
    const found = await find(remote("http://modules.test/it.wasm"), [], { proxies });
    expect(await found.bytes()).toEqual(MODULE);
    expect(asked).toEqual(["GET http://modules.test/it.wasm"]);
  });

  it("come from registries, with a login where one is wanted, and only as their digest says", async () => {
    const login = { user: "ann", password: "pass" };
    const registry = await ociRegistry({ login });
    const digest = registry.push("team/it", "v1", imageLayer(MODULE));
    registry.push("team/art", "v1", artifactLayer(MODULE));
    registry.push("team/other", "v1", imageLayer(MODULE, "other.wasm"));
    const pullSecret = JSON.stringify({ auths: { [registry.host]: { username: login.user, password: login.password } } });
    const pull = (name: string, more: Partial<RemoteModule> = {}) =>
      find(remote(`oci://${registry.host}/${name}`, { pullSecret, ...more }), [registry.host]);
    for (const name of ["team/it:v1", "team/art:v1", `team/it@${digest}`]) expect(await (await pull(name)).bytes()).toEqual(MODULE);
    expect((await pull("team/it:v1")).digests).toEqual([digest.slice("sha256:".length)]);
    await expect((await pull("team/other:v1")).bytes()).rejects.toThrow("no plugin.wasm");
    await expect(pull(`team/it@sha256:${"0".repeat(64)}`)).rejects.toThrow("status 404");
    await expect(pull("team/it:v1", { pullSecret: undefined })).rejects.toThrow("gives no token");
    for (const missing of ["", "kubernetes://shop/pull"])
      await expect(pull("team/it:v1", { pullSecret: missing })).rejects.toThrow("its image pull secret is not there");
    await expect(find(remote(`oci://${registry.host}/team/it:v1`, { pullSecret }))).rejects.toThrow("which is not called");
    const evil = await ociRegistry({ login, realm: "http://169.254.169.254/token" });
    await expect(find(remote(`oci://${evil.host}/team/it`), [evil.host])).rejects.toThrow("which is not called");
  });
});

describe("a registry that gives something else", () => {
  it("than the digest says, of the image or of what is in it, is not believed", async () => {
    const registry = await ociRegistry();
    const [layer, other] = [imageLayer(MODULE), imageLayer(headerModule("x-wasm", "other"))];
    const digest = registry.push("team/it", "v1", layer);
    const pull = async (name: string) => (await find(remote(`oci://${registry.host}/team/${name}`), [registry.host])).bytes();
    expect(await pull("it:v1")).toEqual(MODULE);
    registry.falsify(digestOf(layer.content), other.content);
    await expect(pull("it:v1")).rejects.toThrow("a layer of the image is not the one its digest names");
    registry.falsify(digest, Buffer.from(JSON.stringify({ layers: [{ mediaType: other.mediaType, digest: digestOf(other.content) }] })));
    await expect(pull(`it@${digest}`)).rejects.toThrow("the image is not the one its digest names");
  });
});

describe("the store", () => {
  async function store(expiryMs = 1_000) {
    const directory = join(await tempDir(), "wasm");
    const clock = manualClock();
    const served = new Map<string, Buffer>([["http://a", MODULE]]);
    let found = 0;
    const open = () =>
      openModuleStore({
        directory,
        expiryMs,
        clock,
        async find({ url }) {
          found += 1;
          const bytes = served.get(url);
          if (bytes === undefined) throw new Error("gone");
          return { digests: [sha256Of(bytes)], bytes: async () => bytes };
        },
        note: () => {},
      });
    return { directory, clock, served, open, found: () => found };
  }

  it("keeps modules for the owner alone, also over a restart", async () => {
    const { directory, open, found } = await store();
    const file = await (await open()).file("r", remote("http://a"));
    expect(await readFile(file)).toEqual(MODULE);
    expect((await stat(file)).mode & 0o777).toBe(0o600);
    expect((await stat(directory)).mode & 0o777).toBe(0o700);
    expect(await (await open()).file("r", remote("http://a", { resourceVersion: "2" }))).toBe(file);
    expect(found()).toBe(1);
  });

  it("asks again as the pull policy says", async () => {
    const { open, found, served } = await store();
    const opened = await open();
    const always = (resourceVersion: string) => opened.file("r", remote("http://a", { pullPolicy: "Always", resourceVersion }));
    const first = await always("1");
    expect(await always("1")).toBe(first);
    expect(found()).toBe(1);
    served.set("http://a", headerModule("x-wasm", "other"));
    expect(await always("2")).not.toBe(first);
    expect(found()).toBe(2);
    served.set("oci://i/x:latest", MODULE).set("oci://i/x:v1", MODULE);
    for (const version of ["1", "2"])
      for (const url of ["oci://i/x:latest", "oci://i/x:v1"]) await opened.file("r", remote(url, { resourceVersion: version }));
    expect(found()).toBe(5);
  });

  it("takes only what has the digest that is wanted", async () => {
    const { open } = await store();
    const opened = await open();
    await expect(opened.file("r", remote("http://a", { sha256: "0".repeat(64) }))).rejects.toThrow("is wanted");
    expect(await opened.file("r", remote("http://a", { sha256: sha256Of(MODULE) }))).toContain(sha256Of(MODULE));
  });

  it("forgets what nobody uses", async () => {
    const { directory, clock, open } = await store();
    const opened = await open();
    const file = await opened.file("r", remote("http://a"));
    clock.advance(5_000);
    await opened.purge();
    expect(await readFile(file)).toEqual(MODULE);
    opened.forget("r");
    await opened.purge();
    expect(await readdir(directory)).toEqual(["modules.json"]);
    expect(opened.size).toBe(0);
  });
});
