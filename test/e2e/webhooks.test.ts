import { mkdir, readFile, rename, writeFile } from "node:fs/promises";
import { request } from "node:https";
import { connect } from "node:net";
import { dirname, join } from "node:path";
import { expect, it } from "vitest";
import { type Istiod, startIstiod } from "../support/istiod.ts";
import { freePort } from "../support/ports.ts";
import { eventually } from "../support/wait.ts";

interface Reply {
  readonly status: number;
  readonly text: string;
}

/** The API server's side: it believes the root of the mesh and no other. */
async function callerOf(istiod: Istiod, port: number) {
  const ca = await readFile(join(istiod.home, "etc/cacerts/root-cert.pem"), "utf8");
  return (path: string, body: string): Promise<Reply> =>
    new Promise((resolve, reject) => {
      const options = { host: "127.0.0.1", port, path, method: "POST", ca, servername: "istiod.istio-system.svc", agent: false };
      const sent = request({ ...options, headers: { "content-type": "application/json" } }, (response) => {
        let text = "";
        response.on("data", (chunk) => {
          text += chunk;
        });
        response.on("end", () => resolve({ status: response.statusCode ?? 0, text }));
      });
      sent.on("error", reject).end(body);
    });
}

const review = (metadata: object = {}): string =>
  JSON.stringify({
    apiVersion: "admission.k8s.io/v1",
    kind: "AdmissionReview",
    request: {
      uid: "1",
      operation: "CREATE",
      kind: { group: "", version: "v1", kind: "Pod" },
      namespace: "shop",
      object: { metadata, spec: { containers: [{ name: "web" }] } },
    },
  });

const patchIn = ({ text }: Reply): string => {
  const { response } = JSON.parse(text) as { readonly response: { readonly patch?: string } };
  return Buffer.from(response.patch ?? "", "base64").toString();
};

async function put(istiod: Istiod, name: string, text: string): Promise<void> {
  const path = join(istiod.home, "var/lib/istio/inject", name);
  await mkdir(dirname(path), { recursive: true });
  await writeFile(`${path}.new`, text);
  await rename(`${path}.new`, path);
}

it("injects with the files of the injector, as they change, and keeps the last good of them", async () => {
  const port = await freePort();
  const istiod = await startIstiod({ env: { HTTPS_ADDR: `127.0.0.1:${port}`, REVISION: "canary" } });
  const call = await callerOf(istiod, port);
  const injected = async (): Promise<string> => patchIn(await call("/inject", review()));
  expect(await injected()).toContain("istiod-canary.istio-system.svc:15012");
  await put(istiod, "values", "global: {hub: example.com/mesh, tag: v7}");
  await put(istiod, "config", "defaultTemplates: [sidecar, team]\ntemplates: {team: 'metadata: {labels: {team: red}}'}");
  await eventually("the new configuration", async () => {
    const patch = await injected();
    return patch.includes("example.com/mesh/proxyv2:v7") && patch.includes('"team":"red"');
  });
  expect(await (await istiod.debug("/debug/inject")).json()).toMatchObject({
    revision: "canary",
    templates: { sidecar: "built in", team: expect.stringMatching(/red/) },
  });
  await put(istiod, "config", "templates: {team: '{{ if }}'}");
  await eventually("the fault is told", async () => (await ready(istiod)).includes('template \\"team\\"'));
  expect(await injected()).toContain('"team":"red"');
  await istiod.write("conf/proxy.yaml", PROXY_CONFIG);
  await eventually("ProxyConfig of the namespace counts", async () => (await injected()).includes("example.com/mesh/proxyv2:v7-debug"));
  expect(await istiod.metric("sidecar_injection_failure_total")).toBe(0);
});

const ready = async (istiod: Istiod): Promise<string> => (await fetch(`http://127.0.0.1:${istiod.httpPort}/ready?verbose`)).text();

const PROXY_CONFIG = `
apiVersion: networking.istio.io/v1beta1
kind: ProxyConfig
metadata: {name: debug, namespace: shop}
spec: {image: {imageType: debug}, environmentVariables: {COLOUR: blue}}
`;

it("serves others while strangers send nothing, slowly, or far too much", async () => {
  const port = await freePort();
  const istiod = await startIstiod({ env: { HTTPS_ADDR: `127.0.0.1:${port}` } });
  const call = await callerOf(istiod, port);
  const idle = Array.from({ length: 50 }, () => connect(port, "127.0.0.1").on("error", () => {}));
  const large = call("/inject", "x".repeat(10 * 1024 * 1024)).catch((error: NodeJS.ErrnoException) => error.code);
  const answers = await Promise.all(Array.from({ length: 20 }, () => call("/inject", review())));
  expect(answers.map(({ status }) => status)).toEqual(Array.from({ length: 20 }, () => 200));
  const refused = await large;
  expect(typeof refused === "object" ? refused.status : refused).toSatisfy((what) => [413, "EPIPE", "ECONNRESET"].includes(what as never));
  for (const socket of idle) socket.destroy();
});

it("opens no port without a cluster unless one is asked for, and none for what is off", async () => {
  const port = await freePort();
  const istiod = await startIstiod({ files: { "mesh.yaml": "services: {inject: false}\n" }, env: { HTTPS_ADDR: `127.0.0.1:${port}` } });
  const call = await callerOf(istiod, port);
  expect((await call("/inject", review())).status).toBe(404);
  expect(istiod.said()).toContain(`webhooks 127.0.0.1:${port}`);
});
