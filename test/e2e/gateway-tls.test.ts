import { execFile } from "node:child_process";
import { Agent } from "node:https";
import { join } from "node:path";
import { connect } from "node:tls";
import { promisify } from "node:util";
import { describe, expect, it } from "vitest";
import { call } from "../support/calls.ts";
import { createCertificateIssuer, type Issued, placeFiles, secretDocument, tlsSecret } from "../support/certificates.ts";
import { tempDir } from "../support/cleanup.ts";
import { httpEcho } from "../support/echo.ts";
import { type Istiod, startIstiod } from "../support/istiod.ts";
import { freePort } from "../support/ports.ts";
import { listening, type RunningProxy, startProxy } from "../support/proxy.ts";
import { startSecureIstiod, startSecureProxy } from "../support/secure-proxy.ts";
import { SERVICE_HOST, serviceEntry } from "../support/service-mesh.ts";
import { isTurnedAway, tlsCall } from "../support/tls-call.ts";
import { askTls, tlsEcho } from "../support/tls-server.ts";
import { eventually, says } from "../support/wait.ts";

const run = promisify(execFile);
const ISTIOCTL = join(import.meta.dirname, "../../dist/istioctl.mjs");

/** A Gateway with these servers, and everything that comes in there sent to one echo server. */
async function edgeConfig(servers: readonly string[]): Promise<string> {
  const echo = await httpEcho("shop");
  return `
apiVersion: networking.istio.io/v1
kind: Gateway
metadata: {name: edge, namespace: shop}
spec:
  selector: {app: edge}
  servers:
${servers.map((server) => `  - ${server}\n`).join("")}
---
apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: {name: svc, namespace: shop}
spec: {hosts: [svc.example.com], location: MESH_INTERNAL, resolution: STATIC, ports: [{number: 80, name: http, protocol: HTTP}], endpoints: [{address: 127.0.0.1, ports: {http: ${echo.port}}}]}
---
apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: {name: svc, namespace: shop}
spec: {hosts: ["*"], gateways: [edge], http: [{route: [{destination: {host: svc.example.com}}]}]}
`;
}

const server = (port: number, host: string, tls: string): string =>
  `{port: {number: ${port}, name: "${host}", protocol: HTTPS}, hosts: [${host}], tls: {${tls}}}`;

interface Edge {
  readonly istiod: Istiod;
  readonly proxy: RunningProxy;
}

async function startEdge(files: Readonly<Record<string, string>>, port: number, protocol: "delta" | "sotw" = "delta"): Promise<Edge> {
  const istiod = await startSecureIstiod({ files });
  const proxy = await startSecureProxy(istiod, { ...ROUTER, protocol });
  await listening(port);
  return { istiod, proxy };
}

const gatewayTo = (servers: readonly string[], routes: string): string => `
apiVersion: networking.istio.io/v1
kind: Gateway
metadata: {name: edge, namespace: shop}
spec: {selector: {app: edge}, servers: [${servers.join(", ")}]}
---
apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: {name: edge, namespace: shop}
spec: {hosts: ["*"], gateways: [edge], ${routes}}
---
`;

const TO_SERVICE = `http: [{route: [{destination: {host: ${SERVICE_HOST}}}]}]`;
const ROUTER = { name: "edge", type: "router", address: "127.0.0.8", labels: { app: "edge" } } as const;

/** The OCSP response that a server staples to its certificate; empty where it has none. */
const stapled = (port: number, servername: string): Promise<Buffer> =>
  new Promise((resolve, reject) => {
    const socket = connect({ port, host: "127.0.0.1", servername, requestOCSP: true, rejectUnauthorized: false }, () => socket.end());
    socket.on("OCSPResponse", (response: Buffer | null) => resolve(response ?? Buffer.alloc(0))).on("error", reject);
  });

describe("TLS that a gateway ends", () => {
  it.for(["delta", "sotw"] as const)(
    "shows the certificates of Secrets, asks clients for theirs, keeps to versions and ciphers (%s)",
    async (protocol) => {
      const [ca, clients] = [await createCertificateIssuer("servers"), await createCertificateIssuer("clients")];
      const [a, b, m] = [await ca.issue("DNS:a.example.com"), await ca.issue("DNS:b.example.com"), await ca.issue("DNS:m.example.com")];
      const [known, other, stranger] = [
        await clients.issue("URI:spiffe://cluster.local/ns/x/sa/good"),
        await clients.issue("DNS:other"),
        await ca.issue("DNS:x"),
      ];
      const staple = await ca.staple(a);
      const revoked = await clients.issue("DNS:revoked");
      const [simple, mutual, optional, old, redirect] = [
        await freePort(),
        await freePort(),
        await freePort(),
        await freePort(),
        await freePort(),
      ];
      const config = await edgeConfig([
        server(simple, "a.example.com", "mode: SIMPLE, credentialName: a-cert"),
        server(simple, "b.example.com", "mode: SIMPLE, credentialName: b-cert, minProtocolVersion: TLSV1_3"),
        server(simple, "r.example.com", "mode: SIMPLE, credentialNames: [ec-cert, rsa-cert]"),
        server(mutual, "m.example.com", "mode: MUTUAL, credentialName: m-cert, subjectAltNames: ['spiffe://cluster.local/ns/x/sa/good']"),
        server(optional, "o.example.com", "mode: OPTIONAL_MUTUAL, credentialName: o-cert"),
        server(
          old,
          "c.example.com",
          "mode: SIMPLE, credentialName: a-cert, maxProtocolVersion: TLSV1_2, cipherSuites: [ECDHE-ECDSA-AES256-GCM-SHA384]",
        ),
        `{port: {number: ${redirect}, name: plain, protocol: HTTP}, hosts: ["*"], tls: {httpsRedirect: true}}`,
      ]);
      const secrets = [
        tlsSecret("shop/a-cert", a, { "tls.ocsp-staple": staple }),
        secretDocument("shop/b-cert", { cert: b.cert, key: b.key }),
        tlsSecret("shop/m-cert", m, { "ca.crt": clients.cert }),
        tlsSecret("shop/o-cert", m),
        secretDocument("shop/o-cert-cacert", { cacert: clients.cert, crl: await clients.revoke(revoked) }),
        tlsSecret("shop/ec-cert", await ca.issue("DNS:r.example.com")),
        tlsSecret("shop/rsa-cert", await ca.issueRsa("DNS:r.example.com")),
      ].join("");
      const { proxy } = await startEdge({ "conf/edge.yaml": config + secrets }, redirect, protocol);
      for (const port of [simple, mutual, optional, old]) await listening(port);

      const first = await tlsCall({ port: simple, name: "a.example.com", ca: ca.cert });
      expect(first).toMatchObject({ status: 200, by: "shop", shown: "DNS:a.example.com" });
      expect(await tlsCall({ port: simple, name: "b.example.com", ca: ca.cert })).toMatchObject({
        shown: "DNS:b.example.com",
        protocol: "TLSv1.3",
      });
      expect(await isTurnedAway({ port: simple, name: "b.example.com", maxVersion: "TLSv1.2" })).toBe(true);
      expect(await isTurnedAway({ port: simple, name: "nobody.example.com" })).toBe(true);

      expect(await stapled(simple, "a.example.com")).toEqual(staple);
      expect(await stapled(simple, "b.example.com")).toEqual(Buffer.alloc(0));

      const asR = { port: simple, name: "r.example.com", ca: ca.cert, maxVersion: "TLSv1.2" } as const;
      expect((await tlsCall({ ...asR, ciphers: "ECDHE-ECDSA-AES128-GCM-SHA256" })).cipher).toContain("ECDSA");
      expect((await tlsCall({ ...asR, ciphers: "ECDHE-RSA-AES128-GCM-SHA256" })).cipher).toContain("RSA");

      const asM = { port: mutual, name: "m.example.com" };
      expect(await tlsCall({ ...asM, ...known })).toMatchObject({ status: 200, by: "shop", shown: "DNS:m.example.com" });
      for (const one of [{}, other, stranger]) expect(await isTurnedAway({ ...asM, ...one })).toBe(true);

      const asO = { port: optional, name: "o.example.com" };
      for (const one of [{}, known, other]) expect(await tlsCall({ ...asO, ...one })).toMatchObject({ status: 200 });
      for (const one of [stranger, revoked]) expect(await isTurnedAway({ ...asO, ...one })).toBe(true);

      const asC = { port: old, name: "c.example.com" };
      expect(await tlsCall(asC)).toMatchObject({ protocol: "TLSv1.2", cipher: "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384" });
      expect(await isTurnedAway({ ...asC, ciphers: "ECDHE-ECDSA-AES128-GCM-SHA256", maxVersion: "TLSv1.2" })).toBe(true);
      expect(await isTurnedAway({ ...asC, minVersion: "TLSv1.3" })).toBe(true);

      const moved = await call({ port: redirect, host: "a.example.com", path: "/x" });
      expect([moved.status, moved.headers.location]).toEqual([301, "https://a.example.com/x"]);
      await proxy.assertNothingRejected();
    },
  );

  it("follows a Secret without a dropped connection, and keeps the last good one where an edit breaks it", async () => {
    const ca = await createCertificateIssuer("servers");
    const [first, second, third] = [
      await ca.issue("DNS:a.example.com"),
      await ca.issue("DNS:a.example.com"),
      await ca.issue("DNS:a.example.com"),
    ];
    const port = await freePort();
    const config = await edgeConfig([server(port, "a.example.com", "mode: SIMPLE, credentialName: a-cert")]);
    const { istiod, proxy } = await startEdge({ "conf/edge.yaml": config, "conf/secret.yaml": tlsSecret("shop/a-cert", first) }, port);
    const target = { port, name: "a.example.com", ca: ca.cert };
    const agent = new Agent({ keepAlive: true, maxSockets: 1 });
    const before = await tlsCall({ ...target, agent });

    await istiod.write("conf/secret.yaml", tlsSecret("shop/a-cert", second));
    const renewed = await eventually("new handshakes see the new certificate", async () => {
      const answer = await tlsCall(target);
      return answer.serial !== before.serial && answer;
    });
    expect(await tlsCall({ ...target, agent })).toMatchObject({ status: 200, from: before.from });
    agent.destroy();

    const mismatched: Issued = { cert: third.cert, key: first.key };
    await istiod.write("conf/secret.yaml", tlsSecret("shop/a-cert", mismatched));
    expect(await says(istiod, "it is not the key of the certificate of DNS:a.example.com")).toContain("Secret/shop/a-cert");
    expect((await tlsCall(target)).serial).toBe(renewed.serial);
    const problems = await (await istiod.debug("/debug/problems")).text();
    expect(problems).toContain("tls.key");

    const { stdout } = await run(
      process.execPath,
      [ISTIOCTL, "proxy-config", "secret", "edge.shop", "--why", "--istiod", `http://127.0.0.1:${istiod.httpPort}`],
      {
        env: { ...process.env, ISTIO_HOME: istiod.home },
      },
    );
    expect(stdout).toContain("kubernetes://a-cert");
    expect(stdout).toContain(renewed.serial);
    expect(stdout).toMatch(/Secret\/shop\/a-cert .*secret\.yaml:3 \(broken there; last good version in force\)/);

    const newcomer = await freePort();
    await istiod.write(
      "conf/more.yaml",
      `{apiVersion: networking.istio.io/v1, kind: Gateway, metadata: {name: more, namespace: shop}, spec: {selector: {app: late}, servers: [${server(newcomer, "a.example.com", "mode: SIMPLE, credentialName: a-cert")}]}}`,
    );
    await istiod.write(
      "conf/more-routes.yaml",
      `{apiVersion: networking.istio.io/v1, kind: VirtualService, metadata: {name: more, namespace: shop}, spec: {hosts: ["*"], gateways: [more], http: [{route: [{destination: {host: svc.example.com}}]}]}}`,
    );
    await startSecureProxy(istiod, { name: "late", type: "router", address: "127.0.0.7", labels: { app: "late" } });
    await listening(newcomer);
    expect((await tlsCall({ ...target, port: newcomer })).serial).toBe(renewed.serial);

    await istiod.stop("SIGKILL");
    await istiod.start();
    await eventually("both gateways are back", async () => (await istiod.metric("pilot_xds")) === 2);
    await eventually("they have asked for the certificate again", () => istiod.log().includes("there is no valid Secret shop/a-cert"));
    for (const at of [port, newcomer]) expect((await tlsCall({ ...target, port: at })).serial).toBe(renewed.serial);

    await istiod.write("conf/secret.yaml", tlsSecret("shop/a-cert", third));
    await eventually(
      "the corrected one is in force",
      async () => ![before.serial, renewed.serial].includes((await tlsCall(target)).serial),
    );

    for (const one of [first, second, third, mismatched]) {
      const [, line = ""] = one.key.trim().split("\n");
      const traces = [line, Buffer.from(one.key).toString("base64").slice(60, 120)];
      for (const trace of traces) expect(istiod.log()).not.toContain(trace);
      const node = "router~127.0.0.8~edge.shop~shop.svc.cluster.local";
      const pages = ["/debug/configz", `/debug/config_dump?proxyID=${node}`, "/debug/syncz", "/debug/adsz", "/debug/problems"];
      for (const page of pages) {
        const text = await (await istiod.debug(page)).text();
        for (const trace of traces) expect(text).not.toContain(trace);
        if (page.includes("config_dump")) expect(text).toContain("kubernetes://a-cert");
      }
    }
    await proxy.assertNothingRejected();
  });

  it("opens for others while a Secret is missing or of another namespace, and for those when it comes or is granted", async () => {
    const ca = await createCertificateIssuer("servers");
    const port = await freePort();
    const config = await edgeConfig([
      server(port, "a.example.com", "mode: SIMPLE, credentialName: a-cert"),
      server(port, "late.example.com", "mode: SIMPLE, credentialName: late-cert"),
      server(port, "bank.example.com", "mode: SIMPLE, credentialName: kubernetes-gateway://bank/vault"),
    ]);
    const secrets =
      tlsSecret("shop/a-cert", await ca.issue("DNS:a.example.com")) + tlsSecret("bank/vault", await ca.issue("DNS:bank.example.com"));
    const { istiod, proxy } = await startEdge({ "conf/edge.yaml": config, "conf/secrets.yaml": secrets }, port);
    const answers = (name: string): Promise<boolean> =>
      tlsCall({ port, name: `${name}.example.com`, ca: ca.cert }).then(({ status }) => status === 200);
    expect(await answers("a")).toBe(true);
    for (const name of ["late", "bank"]) expect(await isTurnedAway({ port, name: `${name}.example.com` })).toBe(true);

    await istiod.write("conf/late.yaml", tlsSecret("shop/late-cert", await ca.issue("DNS:late.example.com")));
    await eventually("the late one is served", () => answers("late"));
    expect(await isTurnedAway({ port, name: "bank.example.com" })).toBe(true);
    const grant = `{apiVersion: gateway.networking.k8s.io/v1, kind: ReferenceGrant, metadata: {name: edge, namespace: bank}, spec: {from: [{group: networking.istio.io, kind: Gateway, namespace: shop}], to: [{group: "", kind: Secret}]}}`;
    await istiod.write("conf/bank/grant.yaml", grant);
    await eventually("the granted one is served", () => answers("bank"));

    await istiod.remove("conf/late.yaml");
    await eventually("its removal is noticed", () => istiod.log().includes("there is no valid Secret shop/late-cert"));
    expect(await answers("a")).toBe(true);
    await proxy.assertNothingRejected();
  });
});

describe("certificates in files beside a gateway that has no agent", () => {
  it("serve a gateway, and are followed by Envoy itself; files that are not there cost their server only", async () => {
    const [ca, clients] = [await createCertificateIssuer("servers"), await createCertificateIssuer("clients")];
    const [first, second] = [await ca.issue("DNS:a.example.com"), await ca.issue("DNS:a.example.com")];
    const [client, revoked] = [await clients.issue("DNS:client"), await clients.issue("DNS:revoked")];
    const dir = await tempDir();
    const filesOf = ({ cert, key }: Issued) => ({ "cert.pem": cert, "key.pem": key });
    await placeFiles(dir, { ...filesOf(first), "ca.pem": clients.cert, "crl.pem": await clients.revoke(revoked) });
    await placeFiles(join(dir, "later"), {});
    const echo = await httpEcho("shop");
    const [port, service] = [await freePort(), await freePort()];
    const tls = (where: string): string => `serverCertificate: ${where}/cert.pem, privateKey: ${where}/key.pem`;
    const servers = [
      `{port: {number: ${port}, name: a, protocol: HTTPS}, hosts: [a.example.com], tls: {mode: SIMPLE, ${tls(dir)}}}`,
      `{port: {number: ${port}, name: m, protocol: HTTPS}, hosts: [m.example.com], tls: {mode: MUTUAL, caCertificates: ${dir}/ca.pem, caCrl: ${dir}/crl.pem, ${tls(dir)}}}`,
      `{port: {number: ${port}, name: late, protocol: HTTPS}, hosts: [late.example.com], tls: {mode: SIMPLE, ${tls(`${dir}/later`)}}}`,
    ];
    const istiod = await startIstiod({
      files: { "conf/all.yaml": gatewayTo(servers, TO_SERVICE) + serviceEntry(service, { backends: [echo] }) },
    });
    await startProxy({ ...ROUTER, xdsPort: istiod.grpcPort });
    await listening(port);

    const target = { port, name: "a.example.com", ca: ca.cert };
    const before = await tlsCall(target);
    expect(before).toMatchObject({ status: 200, by: "shop" });
    const mutual = { port, name: "m.example.com" };
    expect(await tlsCall({ ...mutual, ...client })).toMatchObject({ status: 200 });
    for (const one of [{}, revoked]) expect(await isTurnedAway({ ...mutual, ...one })).toBe(true);
    const late = { port, name: "late.example.com" };
    expect(await isTurnedAway(late)).toBe(true);

    await placeFiles(dir, filesOf(second));
    await eventually("the renewed certificate is shown", async () => (await tlsCall(target)).serial !== before.serial);
    await placeFiles(dir, { "crl.pem": await clients.revoke(client) });
    await eventually("the new list counts", () => isTurnedAway({ ...mutual, ...client }));
    await placeFiles(join(dir, "later"), filesOf(first));
    await eventually("the late files are served", async () => !(await isTurnedAway(late)));
  });
});

/** Shakes hands as a sidecar does and gives the name in the certificate that is shown; undefined where nobody takes it. */
const saysName = (port: number, servername: string): Promise<string | undefined> =>
  new Promise((resolve) => {
    const socket = connect({ port, host: "127.0.0.1", servername, ALPNProtocols: ["istio"], rejectUnauthorized: false });
    socket.on("secureConnect", () => resolve(socket.getPeerX509Certificate()?.subjectAltName?.replace("DNS:", "")));
    socket.on("error", () => resolve(undefined)).on("close", () => resolve(undefined));
    socket.setTimeout(5_000, () => socket.destroy());
  });

describe("TLS that a gateway does not end", () => {
  it("goes where its name says: one that VirtualServices list, or that of a cluster", async () => {
    const [a, b] = [await tlsEcho("a"), await tlsEcho("b")];
    const [named, automatic] = [await freePort(), await freePort()];
    const servers = [
      `{port: {number: ${named}, name: named, protocol: TLS}, hosts: [a.example.com], tls: {mode: PASSTHROUGH}}`,
      `{port: {number: ${automatic}, name: automatic, protocol: TLS}, hosts: ["*.example.com"], tls: {mode: AUTO_PASSTHROUGH}}`,
    ];
    const entry = (host: string, port: number): string =>
      `{apiVersion: networking.istio.io/v1, kind: ServiceEntry, metadata: {name: ${host}, namespace: shop}, spec: {hosts: [${host}.example.com], location: MESH_INTERNAL, resolution: STATIC, ports: [{number: 443, name: tls, protocol: TLS}], endpoints: [{address: 127.0.0.1, ports: {tls: ${port}}, labels: {security.istio.io/tlsMode: istio}}]}}\n---\n`;
    const routes = "tls: [{match: [{sniHosts: [a.example.com]}], route: [{destination: {host: a.example.com}}]}]";
    const istiod = await startIstiod({
      files: {
        "conf/all.yaml":
          gatewayTo(servers, routes).replace('hosts: ["*"]', "hosts: [a.example.com]") + entry("a", a.port) + entry("b", b.port),
      },
    });
    const proxy = await startProxy({ ...ROUTER, xdsPort: istiod.grpcPort });
    await listening(automatic);
    await listening(named);
    expect(await askTls(named, "a.example.com")).toBe("a");
    expect(await askTls(named, "b.example.com")).toBeUndefined();
    // Only what begins like mutual TLS of the mesh is taken here, and it is for the servers to end it.
    expect(await saysName(automatic, "outbound_.443_._.b.example.com")).toBe("b");
    expect(await saysName(automatic, "outbound_.443_._.nobody.example.com")).toBeUndefined();
    expect(await askTls(automatic, "outbound_.443_._.b.example.com")).toBeUndefined();
    await proxy.assertNothingRejected();
  });
});
