import type { Server } from "node:http";
import { Agent, request } from "node:https";
import type { AddressInfo } from "node:net";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { systemClock } from "../base/clock.ts";
import { silentLog } from "../base/log.ts";
import { Secret } from "../base/secret.ts";
import { makeCa } from "../ca/ca-fixture.ts";
import { defaultMeshConfig } from "../config/mesh/defaults.ts";
import { readInjection } from "../inject/read-injection.ts";
import { buildCertificate } from "../pki/build-certificate.ts";
import { generateKeys, privateKeyPem } from "../pki/keys.ts";
import { writePem } from "../pki/pem.ts";
import type { TlsMaterial } from "../wire/tls-listener.ts";
import { listenWebhooks, type WebhookServerOptions } from "./webhook-server.ts";

let server: Server;
let port = 0;
let ca = "";
let options: WebhookServerOptions;
let renew: (material: TlsMaterial) => void = () => {};
let issue: () => Promise<TlsMaterial>;
const counted: string[] = [];
/** Lines of the log. */
const warned: string[] = [];

beforeAll(async () => {
  const validity = { notBefore: systemClock.now() - 60_000, notAfter: systemClock.now() + 600_000 };
  const root = await makeCa("webhooks", validity);
  ca = root.certificate.pem;
  issue = async () => {
    const keys = await generateKeys("P-256");
    const keyInfo = keys.publicKey.export({ type: "spki", format: "der" });
    const issuer = { key: root.keys.privateKey, keyInfo: root.certificate.keyInfo, name: root.certificate.subject };
    const der = buildCertificate({ use: { is: "server", dnsNames: ["localhost"], addresses: [] }, keyInfo, ...validity, issuer });
    return { chain: writePem("CERTIFICATE", der), key: new Secret(privateKeyPem(keys.privateKey)), clientRoots: [] };
  };
  const read = readInjection({});
  if ("faults" in read) throw new Error(read.faults.join());
  const settings = { ...read, mesh: defaultMeshConfig(), revision: "default", compliancePolicy: "" };
  options = {
    host: "127.0.0.1",
    port: 0,
    tls: {
      current: await issue(),
      follow(changed) {
        renew = changed;
        return () => {};
      },
    },
    injection: {
      settings: () => settings,
      native: () => ({ native: true, reason: "told" }),
      proxyConfigs: () => [],
      openShift: () => undefined,
    },
    validates: true,
    metrics: {
      injectionRequested: () => counted.push("requested"),
      injected: (outcome) => counted.push(outcome),
      validated: ({ kind }, reason) => counted.push(`${kind} ${reason ?? "passed"}`),
      patched: () => {},
      validationHttpError: (status) => counted.push(`http ${status}`),
    },
    clock: systemClock,
    log: { ...silentLog, warn: (_, sentence = "") => void warned.push(sentence) },
  };
  server = await listenWebhooks(options);
  port = (server.address() as AddressInfo).port;
});
afterAll(() => void server?.close());
beforeEach(() => void counted.splice(0));

interface Reply {
  readonly status: number;
  readonly text: string;
  readonly serial: string;
}

function post(path: string, body: string | Buffer, type = "application/json"): Promise<Reply> {
  return new Promise((resolve, reject) => {
    const sent = request(
      { host: "127.0.0.1", port, path, method: "POST", ca, servername: "localhost", agent: false, headers: { "content-type": type } },
      (response) => {
        const serial = (response.socket as import("node:tls").TLSSocket).getPeerCertificate().serialNumber;
        let text = "";
        response.on("data", (chunk) => {
          text += chunk;
        });
        response.on("end", () => resolve({ status: response.statusCode ?? 0, text, serial }));
      },
    );
    sent.on("error", reject);
    sent.end(body);
  });
}

const review = (object: unknown, kind: object, apiVersion = "admission.k8s.io/v1"): string =>
  JSON.stringify({
    apiVersion,
    kind: "AdmissionReview",
    request: { uid: "u1", operation: "CREATE", kind, namespace: "shop", object },
  });

interface Response {
  readonly uid: string;
  readonly allowed: boolean;
  readonly status?: { readonly message: string };
  readonly warnings?: readonly string[];
  readonly patch?: string;
}

const responseOf = ({ text }: Reply): Response => (JSON.parse(text) as { readonly response: Response }).response;
const POD = { group: "", version: "v1", kind: "Pod" };
const VIRTUAL_SERVICE = { group: "networking.istio.io", version: "v1", kind: "VirtualService" };
const virtualService = (spec: unknown) => ({ apiVersion: "networking.istio.io/v1", kind: "VirtualService", metadata: { name: "v" }, spec });

describe("webhooks", () => {
  it("say in one sentence that another program has their port", async () => {
    await expect(listenWebhooks({ ...options, port, tls: { ...options.tls, follow: () => () => {} } })).rejects.toMatchObject({
      message: `127.0.0.1:${port} is taken by another program`,
      hint: "stop the other program, or choose another address under `listen` in mesh.yaml",
    });
  });

  it("inject a pod, in both versions of the review", async () => {
    for (const apiVersion of ["admission.k8s.io/v1", "admission.k8s.io/v1beta1"]) {
      const pod = { metadata: { generateName: "web-" }, spec: { containers: [{ name: "web" }], dnsPolicy: "None" } };
      const reply = await post("/inject/cluster/east/net/n1", review(pod, POD, apiVersion));
      const { uid, allowed, patch = "", warnings } = responseOf(reply);
      expect([reply.status, uid, allowed, JSON.parse(reply.text).apiVersion]).toEqual([200, "u1", true, apiVersion]);
      expect(Buffer.from(patch, "base64").toString()).toMatch(/istio-proxy.*east/s);
      expect(warnings?.[0]).toMatch(/dnsPolicy is None/);
    }
    expect(counted).toEqual(["requested", "injected", "requested", "injected"]);
  });

  it("let pods through that decline, and say why a pod cannot be injected", async () => {
    const declined = { metadata: { labels: { "sidecar.istio.io/inject": "false" } }, spec: { containers: [] } };
    const auditAnnotations = { decision: "not injected: its label sidecar.istio.io/inject is false" };
    expect(responseOf(await post("/inject", review(declined, POD)))).toEqual({ uid: "u1", allowed: true, auditAnnotations });
    const wrong = { metadata: { annotations: { "sidecar.istio.io/interceptionMode": "X" } }, spec: { containers: [] } };
    const { allowed, status } = responseOf(await post("/inject", review(wrong, POD)));
    expect(allowed).toBe(false);
    expect(status?.message).toMatch(/cannot be injected: annotation sidecar.istio.io\/interceptionMode: must be REDIRECT, TPROXY or NONE/);
    expect(responseOf(await post("/inject", review({ spec: { containers: [{ name: 5 }] } }, POD))).status?.message).toMatch(
      /containers\[0\].name/,
    );
    expect(counted).toEqual(["requested", "skipped", "requested", "failed", "requested", "failed"]);
  });

  it("judge objects with field, fault and code, and warn", async () => {
    const bad = virtualService({ hosts: ["a"], http: [{ route: [{ destination: { host: "a", port: { number: 70000 } } }] }], nosuch: 1 });
    const refused = responseOf(await post("/validate", review(bad, VIRTUAL_SERVICE)));
    expect(refused.allowed).toBe(false);
    expect(refused.status?.message).toMatch(/spec\.http\[0\].*\.number: .*\[field\.port\]/);
    expect(refused.warnings).toEqual([expect.stringMatching(/spec\.nosuch: .*\[schema\.newer-field\]/)]);
    const good = virtualService({ hosts: ["a"], http: [{ route: [{ destination: { host: "a" } }] }] });
    expect(responseOf(await post("/validate", review(good, VIRTUAL_SERVICE))).allowed).toBe(true);
    const value = {
      name: "f",
      typed_config: { "@type": "type.googleapis.com/envoy.extensions.filters.http.buffer.v3.Buffer", max_request_bytes: [] },
    };
    const spec = { configPatches: [{ applyTo: "HTTP_FILTER", patch: { operation: "INSERT_FIRST", value } }] };
    const filter = { apiVersion: "networking.istio.io/v1alpha3", kind: "EnvoyFilter", metadata: { name: "f" }, spec };
    const content = responseOf(await post("/validate", review(filter, { ...VIRTUAL_SERVICE, kind: "EnvoyFilter" })));
    expect(content.status?.message).toMatch(/typed_config\.max_request_bytes: .*\[schema\.wrong-type\]/);
    const foreign = { group: "example.com", version: "v1", kind: "Thing" };
    expect(responseOf(await post("/validate", review({ apiVersion: "example.com/v1", kind: "Thing" }, foreign))).allowed).toBe(true);
    const newer = { ...VIRTUAL_SERVICE, kind: "TrafficShaper" };
    const unknown = { apiVersion: "networking.istio.io/v9", kind: "TrafficShaper", metadata: { name: "x" }, spec: {} };
    const passed = responseOf(await post("/validate", review(unknown, newer)));
    expect([passed.allowed, passed.warnings?.length]).toEqual([true, 1]);
  });

  it("take a pod of a newer schema and one with a megabyte of annotations, and lose nothing of them", async () => {
    const pod = {
      metadata: { name: "w", annotations: { big: "x".repeat(1_000_000) } },
      spec: { containers: [{ name: "web", fromTheFuture: { a: [1] } }], alsoNew: { deep: [{ b: 1 }] } },
    };
    const { allowed, patch = "" } = responseOf(await post("/inject", review(pod, POD)));
    expect(allowed).toBe(true);
    expect(Buffer.from(patch, "base64").toString()).not.toMatch(/fromTheFuture|alsoNew|xxxx/);
  });

  it("judge an object with a megabyte of annotations by the rest of it, and repeat none of them", async () => {
    const judge = async (number: number): Promise<Response> => {
      const route = virtualService({ hosts: ["a"], http: [{ route: [{ destination: { host: "a", port: { number } } }] }] });
      const object = { ...route, metadata: { name: "v", annotations: { big: "x".repeat(1_000_000) } } };
      const reply = await post("/validate", review(object, VIRTUAL_SERVICE));
      expect(reply.text.length).toBeLessThan(2_000);
      return responseOf(reply);
    };
    expect((await judge(80)).allowed).toBe(true);
    expect((await judge(70_000)).status?.message).toMatch(/destination\.port\.number/);
  });

  const bad: readonly [what: string, path: string, body: () => string | Buffer, status: number, type?: string][] = [
    ["ten megabytes", "/inject", () => Buffer.alloc(10 * 1024 * 1024, 32), 413],
    ["ten thousand levels of nesting", "/validate", () => `${"[".repeat(10_000)}${"]".repeat(10_000)}`, 400],
    ["objects ten thousand deep", "/inject", () => `${'{"a":'.repeat(10_000)}1${"}".repeat(10_000)}`, 400],
    ["no JSON", "/inject", () => "{", 400],
    ["nothing", "/validate", () => "", 400],
    ["another review", "/validate", () => '{"kind":"TokenReview"}', 400],
    ["a review of another version", "/inject", () => review({}, POD, "admission.k8s.io/v9"), 400],
    ["another type", "/inject", () => "a=b", 415, "application/x-www-form-urlencoded"],
    ["another path", "/elsewhere", () => "{}", 404],
    ["no path", "//[", () => "{}", 404],
  ];
  for (const [what, path, body, status, type] of bad) {
    it(`refuse ${what} with ${status}, and serve the next request`, async () => {
      // A server that will not read on closes the connection, which the one who sends may see first.
      const reply = await post(path, body(), type).catch((error: NodeJS.ErrnoException) => error.code);
      if (typeof reply === "object") expect(reply.status).toBe(status);
      else expect(reply).toMatch(/EPIPE|ECONNRESET/);
      expect((await post("/inject", review({ metadata: {}, spec: { containers: [] } }, POD))).status).toBe(200);
    });
  }

  it("tell the log of what strangers send, but not as often as strangers like", async () => {
    warned.length = 0;
    for (let turn = 0; turn < 5; turn++) await Promise.all(Array.from({ length: 20 }, () => post("/validate", "{")));
    expect(warned.length).toBeGreaterThan(0);
    expect(warned.length).toBeLessThan(100);
  });

  it("say that they keep a connection for longer than an API server does", async () => {
    const told = await new Promise<string>((resolve, reject) => {
      const agent = new Agent({ keepAlive: true, ca, servername: "localhost" });
      const asked = request({ host: "127.0.0.1", port, path: "/ready", agent }, (response) => {
        response.resume().on("end", () => agent.destroy());
        resolve(String(response.headers["keep-alive"]));
      });
      asked.on("error", reject).end();
    });
    expect(Number(/timeout=(\d+)/.exec(told)?.[1])).toBeGreaterThan(90);
  });

  it("show a renewed certificate at once", async () => {
    const before = await post("/inject", review({ metadata: {}, spec: {} }, POD));
    renew(await issue());
    expect((await post("/inject", review({ metadata: {}, spec: {} }, POD))).serial).not.toBe(before.serial);
  });
});
