import { readFile } from "node:fs/promises";
import { request } from "node:http";
import { connect } from "node:net";
import { join } from "node:path";
import { expect, it } from "vitest";
import { meshBelieving } from "../support/agent-mesh.ts";
import { startIstiod } from "../support/istiod.ts";
import { freePort } from "../support/ports.ts";
import { startProxy } from "../support/proxy.ts";
import { createIssuer } from "../support/tokens.ts";
import { eventually } from "../support/wait.ts";

it("open pages are open; the others want the token and a name of this machine", async () => {
  const istiod = await startIstiod();
  const status = (path: string, headers: Record<string, string> = {}): Promise<number> =>
    new Promise((resolve, reject) => {
      request({ host: "127.0.0.1", port: istiod.httpPort, path, headers, agent: false }, (response) => {
        response.resume();
        resolve(response.statusCode ?? 0);
      })
        .on("error", reject)
        .end();
    });
  for (const path of ["/ready", "/version", "/metrics"]) expect([path, await status(path)]).toEqual([path, 200]);
  for (const path of ["/debug/syncz", "/debug/configz", "/debug/config_dump"]) {
    expect([path, await status(path)]).toEqual([path, 401]);
    expect([path, await status(path, { authorization: "Bearer guess" })]).toEqual([path, 401]);
    expect([path, await status(path, { host: "evil.test" })]).toEqual([path, 403]);
  }
  expect((await istiod.debug("/debug/syncz")).status).toBe(200);
});

it("tokens of workloads open pages: all of them those of istiod's own namespace, others what is of theirs, to look and not to do", async () => {
  const issuer = createIssuer("https://id.example.com");
  const entry = (namespace: string): string =>
    `{apiVersion: networking.istio.io/v1, kind: ServiceEntry, metadata: {name: of-${namespace}, namespace: ${namespace}}, spec: {hosts: [${namespace}.test], ports: [{number: 80, name: http, protocol: HTTP}]}}\n`;
  const hidden =
    "{apiVersion: networking.istio.io/v1, kind: VirtualService, metadata: {name: hidden, namespace: bank}, spec: {hosts: [bank.test], exportTo: ['.'], http: [{route: [{destination: {host: bank.test}}]}]}}\n";
  const files = { "mesh.yaml": meshBelieving(issuer), "conf/all.yaml": `${entry("shop")}---\n${entry("bank")}---\n${hidden}` };
  const istiod = await startIstiod({ files, env: { ISTIOD_DEBUG_HOSTS: "istiod.test, other.test" } });
  await startProxy({ xdsPort: istiod.grpcPort, name: "web", address: "127.0.0.31", namespace: "shop" });
  await startProxy({ xdsPort: istiod.grpcPort, name: "teller", address: "127.0.0.32", namespace: "bank" });
  const tokenOf = (ns: string, more = {}): string => issuer.token({ aud: "istio-ca", ns, sa: "default", ...more });
  const ask = async (path: string, token: string, options: { readonly method?: string; readonly host?: string } = {}) => {
    const { promise, resolve, reject } = Promise.withResolvers<{ readonly status: number; readonly text: string }>();
    const headers = { authorization: `Bearer ${token}`, "content-type": "application/json", ...(options.host && { host: options.host }) };
    const sent = request(
      { host: "127.0.0.1", port: istiod.httpPort, path, method: options.method ?? "GET", headers, agent: false },
      (response) => {
        let text = "";
        response.setEncoding("utf8").on("data", (part: string) => (text += part));
        response.on("end", () => resolve({ status: response.statusCode ?? 0, text }));
      },
    );
    sent.on("error", reject).end(options.method === "POST" ? '{"namespace": "bank", "serviceAccount": "teller"}' : undefined);
    return promise;
  };
  const [own, shop] = [tokenOf("istio-system"), tokenOf("shop")];
  await eventually("both are connected", async () =>
    /web\.shop.*teller\.bank|teller\.bank.*web\.shop/s.test((await ask("/debug/syncz", own)).text),
  );
  for (const path of ["/debug/configz", "/debug/registryz", "/debug/mesh"])
    expect([path, (await ask(path, own)).status]).toEqual([path, 200]);
  for (const path of ["/debug/syncz", "/debug/adsz", "/debug/connections", "/debug/configz"]) {
    const { status, text } = await ask(path, shop);
    expect([path, status, text.includes("shop"), text.includes("bank")]).toEqual([path, 200, true, false]);
  }
  for (const page of ["config_dump", "ndsz"]) {
    expect((await ask(`/debug/${page}?proxyID=web.shop`, shop)).status).toBe(200);
    expect((await ask(`/debug/${page}?proxyID=teller.bank`, shop)).status).toBe(404);
  }
  const why = (token: string): Promise<string> => ask("/debug/config_dump?proxyID=web.shop&why", token).then(({ text }) => text);
  await eventually("it has its routes", async () => (await why(own)).includes("VirtualService/bank/hidden"));
  expect(await why(shop)).toContain("ServiceEntry/bank/of-bank");
  expect(await why(shop)).not.toContain("hidden");
  for (const path of ["/debug/registryz", "/debug/mesh", "/debug/list", "/debug/cachez"])
    expect([path, (await ask(path, shop)).status]).toEqual([path, 403]);
  for (const token of [own, shop]) expect((await ask("/api/workload-token", token, { method: "POST" })).status).toBe(403);
  const secret = (await readFile(join(istiod.home, "var/lib/istio/debug.token"), "utf8")).trim();
  const joining = JSON.parse((await ask("/api/workload-token", secret, { method: "POST" })).text) as { readonly token: string };
  const strangers = [
    tokenOf("shop", { aud: "other" }),
    createIssuer("https://id.example.com").token({ aud: "istio-ca", ns: "istio-system", sa: "x" }),
    joining.token,
  ];
  for (const token of strangers) expect((await ask("/debug/syncz", token)).status).toBe(401);
  expect(await istiod.metric("istiod_refused_callers", 'service="debug"')).toBe(2);
  for (const [host, status] of [
    ["istiod.test", 200],
    ["istiod.test:8080", 200],
    ["evil.test", 403],
  ] as const)
    expect((await ask("/debug/syncz", own, { host })).status).toBe(status);
});

it("services that are off open no port", async () => {
  const webhooks = await freePort();
  await startIstiod({
    files: { "mesh.yaml": "services: {inject: false, validate: false}\n" },
    env: { HTTPS_ADDR: `127.0.0.1:${webhooks}` },
  });
  const isOpen = (port: number): Promise<boolean> =>
    new Promise((resolve) => {
      const socket = connect(port, "127.0.0.1", () => {
        socket.destroy();
        resolve(true);
      }).on("error", () => resolve(false));
    });
  expect(await isOpen(webhooks)).toBe(false);
});
