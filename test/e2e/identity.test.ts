import { execFileSync } from "node:child_process";
import { X509Certificate } from "node:crypto";
import { mkdir, readdir, rm, writeFile } from "node:fs/promises";
import { connect } from "node:net";
import { networkInterfaces } from "node:os";
import { join } from "node:path";
import { connect as connectTls } from "node:tls";
import { create, type JsonObject, toBinary } from "@bufbuild/protobuf";
import { type ChannelCredentials, status as GRPC, Metadata } from "@grpc/grpc-js";
import { describe, expect, it } from "vitest";
import { systemClock } from "../../src/base/clock.ts";
import { caTexts, makeCa, type TestCa } from "../../src/ca/ca-fixture.ts";
import { CREATE_CERTIFICATE } from "../../src/ca/certificate-service.ts";
import { DeltaDiscoveryRequestSchema } from "../../src/gen/envoy/service/discovery/v3/discovery_pb.js";
import { buildCertificate } from "../../src/pki/build-certificate.ts";
import { generateKeys, privateKeyPem } from "../../src/pki/keys.ts";
import { writePem } from "../../src/pki/pem.ts";
import { openAdsClient } from "../../src/wire/grpc-client.ts";
import { CLUSTER_TYPE } from "../../src/wire/type-urls.ts";
import { tally } from "../support/calls.ts";
import { tempDir } from "../support/cleanup.ts";
import { httpEcho } from "../support/echo.ts";
import { answersTls, askCertificate, clientCredentials, rootOf, SERVER_NAME, type Signed } from "../support/identity.ts";
import { type Istiod, type IstiodOptions, runIstiod, startIstiod } from "../support/istiod.ts";
import { freePort } from "../support/ports.ts";
import { listening, startProxy } from "../support/proxy.ts";
import { SHOP_HOST, shopService } from "../support/shop.ts";
import { createIssuer, type Issuer } from "../support/tokens.ts";
import { eventually } from "../support/wait.ts";

const issuer = createIssuer("https://id.example.com");
const claims = { aud: "istio-ca", ns: "shop", sa: "cart" };
const NOW_S = Math.floor(systemClock.now() / 1_000);

const meshOf = (one: Issuer): string => `tokenIssuers:
- issuer: ${one.name}
  jwks: '${one.jwks}'
  audiences: [istio-ca]
  identity: {namespace: ns, serviceAccount: sa}
`;

const withIssuer = (options: IstiodOptions = {}): Promise<Istiod> =>
  startIstiod({ ...options, files: { "mesh.yaml": meshOf(issuer), ...options.files } });

const codeOf = (asked: Promise<unknown>): Promise<number> =>
  asked.then(
    () => GRPC.OK,
    (error: { code: number }) => error.code,
  );

const uriOf = ({ chain }: Signed): string | undefined => new X509Certificate(chain[0] ?? "").subjectAltName;

interface Call {
  readonly address: string;
  readonly token?: string;
  readonly credentials?: ChannelCredentials;
}

/** Opens a discovery stream and says who it is; resolves with "served" at the first answer, else with the reason for the end. */
function firstAnswer({ address, token, credentials }: Call, node: { id: string; metadata?: JsonObject }): Promise<string> {
  const metadata = new Metadata();
  if (token !== undefined) metadata.set("authorization", `Bearer ${token}`);
  return new Promise((resolve) => {
    const client = openAdsClient({
      address,
      variant: "delta",
      ...(credentials !== undefined && { credentials }),
      metadata,
      message() {
        resolve("served");
        client.close();
      },
      ended: (error) => resolve(error?.message ?? "ended"),
    });
    client.send(toBinary(DeltaDiscoveryRequestSchema, create(DeltaDiscoveryRequestSchema, { node, typeUrl: CLUSTER_TYPE })));
  });
}

/** The same over TLS. */
async function discover(
  istiod: Istiod,
  node: { id: string; metadata?: JsonObject },
  who: { token?: string; certificate?: Signed },
): Promise<string> {
  const credentials = await clientCredentials(istiod, who.certificate);
  return firstAnswer(
    { address: `localhost:${istiod.securePort}`, credentials, ...(who.token !== undefined && { token: who.token }) },
    node,
  );
}

/** A server's certificate from a CA of the test's own. */
async function serverLeaf(
  { certificate, keys }: TestCa,
  dnsNames: readonly string[],
): Promise<{ readonly key: string; readonly pem: string }> {
  const own = await generateKeys("P-256");
  const der = buildCertificate({
    use: { is: "server", dnsNames, addresses: [] },
    keyInfo: own.publicKey.export({ type: "spki", format: "der" }),
    notBefore: certificate.notBefore,
    notAfter: certificate.notAfter,
    issuer: { key: keys.privateKey, keyInfo: certificate.keyInfo, name: certificate.subject },
  });
  return { key: privateKeyPem(own.privateKey), pem: writePem("CERTIFICATE", der) };
}

const shownSerial = (port: number): Promise<string | undefined> =>
  new Promise((resolve, reject) => {
    const socket = connectTls(
      { port, host: "127.0.0.1", servername: SERVER_NAME, rejectUnauthorized: false, ALPNProtocols: ["h2"] },
      () => {
        resolve(socket.getPeerX509Certificate()?.serialNumber);
        socket.destroy();
      },
    );
    socket.on("error", reject);
  });

const nodeOf = (namespace: string, metadata: JsonObject = {}) => ({
  id: `sidecar~10.9.9.9~web.${namespace}~${namespace}.svc.cluster.local`,
  metadata: { WORKLOAD_IDENTITY: "none", ...metadata },
});

describe("the CA", () => {
  it("signs for whom the token names, whatever the CSR asks for, with a chain that openssl verifies", async () => {
    const istiod = await withIssuer();
    const signed = await askCertificate(istiod, { token: issuer.token(claims), ttlSeconds: 3_600 });
    expect(uriOf(signed)).toBe("URI:spiffe://cluster.local/ns/shop/sa/cart");
    const dir = await tempDir();
    await writeFile(join(dir, "leaf.pem"), signed.chain[0] ?? "");
    await writeFile(join(dir, "roots.pem"), signed.roots);
    expect(
      execFileSync("openssl", ["verify", "-x509_strict", "-CAfile", join(dir, "roots.pem"), join(dir, "leaf.pem")], { encoding: "utf8" }),
    ).toContain(": OK");
    const left = new X509Certificate(signed.chain[0] ?? "").validToDate.getTime() - systemClock.now();
    expect(left / 1_000).toBeGreaterThan(3_500);
    expect(left / 1_000).toBeLessThanOrEqual(3_600);
    expect(await istiod.metric("citadel_server_success_cert_issuance_count")).toBe(1);
    expect(await istiod.metric("citadel_server_root_cert_expiry_seconds")).toBeGreaterThan(9 * 365 * 86_400);
  });

  it("renews by certificate for the same identity, also when the token has run out", async () => {
    const istiod = await withIssuer();
    const first = await askCertificate(istiod, { token: issuer.token(claims) });
    const expired = issuer.token({ ...claims, exp: NOW_S - 60 });
    const second = await askCertificate(istiod, { certificate: first, token: expired, name: "spiffe://cluster.local/ns/bank/sa/teller" });
    expect(uriOf(second)).toBe("URI:spiffe://cluster.local/ns/shop/sa/cart");
    expect(second.chain[0]).not.toBe(first.chain[0]);
  });

  it("renews for the same identity only, also in an alias of the trust domain, until that is given up", async () => {
    const istiod = await withIssuer();
    const first = await askCertificate(istiod, { token: issuer.token(claims) });
    await istiod.write("mesh.yaml", `${meshOf(issuer)}trustDomain: new.test\ntrustDomainAliases: [cluster.local]\n`);
    const byToken = async (): Promise<boolean> =>
      uriOf(await askCertificate(istiod, { token: issuer.token(claims) })) === "URI:spiffe://new.test/ns/shop/sa/cart";
    await eventually("tokens are of the new domain", byToken);
    expect(uriOf(await askCertificate(istiod, { certificate: first }))).toBe("URI:spiffe://cluster.local/ns/shop/sa/cart");
    await istiod.write("mesh.yaml", `${meshOf(issuer)}trustDomain: new.test\n`);
    const refused = async (): Promise<boolean> => (await codeOf(askCertificate(istiod, { certificate: first }))) === GRPC.UNAUTHENTICATED;
    await eventually("the old domain is given up", refused);
  });

  it("refuses everybody else, says why, and counts", async () => {
    const istiod = await withIssuer();
    const stranger = createIssuer("https://id.example.com");
    const none = [{ alg: "none" }, { iss: issuer.name, exp: NOW_S + 600, ...claims }]
      .map((part) => Buffer.from(JSON.stringify(part)).toString("base64url"))
      .join(".");
    const tokens = [
      undefined,
      issuer.token({ ...claims, exp: NOW_S - 1 }),
      issuer.token({ ...claims, aud: "vault" }),
      issuer.token({ ...claims, ns: "a/b" }),
      stranger.token(claims),
      createIssuer("https://other.example.com").token(claims),
      `${none}.`,
      `${none}.AAAA`,
      issuer.token({ ...claims, filler: "x".repeat(16 * 1024) }),
    ];
    for (const token of tokens)
      expect(await codeOf(askCertificate(istiod, token === undefined ? {} : { token }))).toBe(GRPC.UNAUTHENTICATED);
    await expect(askCertificate(istiod, { token: stranger.token(claims) })).rejects.toThrow("not signed by its issuer");
    expect(await istiod.metric("citadel_server_authentication_failure_count")).toBe(tokens.length);
    expect(await istiod.metric("citadel_server_id_extraction_err_count")).toBe(1);
    expect(await istiod.metric("istiod_refused_callers", 'reason="token signature"')).toBe(2);
    const token = issuer.token(claims);
    expect(await codeOf(askCertificate(istiod, { token, csr: "garbage" }))).toBe(GRPC.INVALID_ARGUMENT);
    expect(await codeOf(askCertificate(istiod, { token, metadata: { ImpersonatedIdentity: "spiffe://x" } }))).toBe(GRPC.PERMISSION_DENIED);
    expect(await istiod.metric("citadel_server_success_cert_issuance_count")).toBe(0);
  });

  it("believes no certificate of another root", async () => {
    const [one, other] = [await withIssuer(), await withIssuer()];
    const foreign = await askCertificate(other, { token: issuer.token(claims) });
    await expect(askCertificate(one, { certificate: foreign })).rejects.toThrow("client certificate was not accepted");
    expect(uriOf(await askCertificate(one, { certificate: foreign, token: issuer.token(claims) }))).toContain("/ns/shop/sa/cart");
  });

  it("is not on the plaintext port", async () => {
    const istiod = await withIssuer();
    const { Client, credentials } = await import("@grpc/grpc-js");
    const client = new Client(`127.0.0.1:${istiod.grpcPort}`, credentials.createInsecure());
    const identity = (bytes: Buffer): Buffer => bytes;
    const headers = new Metadata();
    headers.set("authorization", `Bearer ${issuer.token(claims)}`);
    const code = await new Promise((resolve) =>
      client.makeUnaryRequest(CREATE_CERTIFICATE, identity, identity, Buffer.alloc(0), headers, (error) => resolve(error?.code)),
    );
    client.close();
    expect(code).toBe(GRPC.UNIMPLEMENTED);
  });
});

describe("the files of the CA", () => {
  it("are kept over a restart, and a set that is not whole ends the start with one sentence", async () => {
    const istiod = await withIssuer();
    const root = await rootOf(istiod);
    await istiod.stop();
    await istiod.start();
    expect(await rootOf(istiod)).toEqual(root);
    await istiod.stop();
    await rm(join(istiod.home, "etc/cacerts/ca-key.pem"));
    const ended = await runIstiod({ env: { ISTIO_HOME: istiod.home } });
    expect(ended.status).toBe(1);
    expect(ended.log.trim().split("\n")).toHaveLength(1);
    expect(ended.log).toContain("ca-key.pem is missing");
    expect(await readdir(join(istiod.home, "etc/cacerts"))).toHaveLength(3);
  });

  it("may be replaced while it runs: an intermediate signs at once, a bad set leaves it in force", async () => {
    const istiod = await withIssuer();
    const times = { notBefore: systemClock.now() - 3_600_000, notAfter: systemClock.now() + 86_400_000_000 };
    const root = await makeCa("corp", times);
    const middle = await makeCa("mesh", { ...times, issuer: root });
    const put = async (texts: Readonly<Record<string, string>>): Promise<void> => {
      for (const [name, text] of Object.entries(texts)) await writeFile(join(istiod.home, "etc/cacerts", name), text);
    };
    await put({ ...caTexts(middle, root) });
    const signed = await eventually("the new CA signs", async () => {
      const got = await askCertificate(istiod, { token: issuer.token(claims) });
      return got.roots === root.certificate.pem && got;
    });
    expect(signed.chain).toHaveLength(2);
    expect(new X509Certificate(signed.chain[0] ?? "").issuer).toBe("O=mesh");
    expect(uriOf(await askCertificate(istiod, { certificate: signed }))).toContain("/ns/shop/sa/cart");

    // One that ends soon is told of at once, and nothing it signs outlives it.
    const fiveDays = 5 * 86_400;
    const short = await makeCa("short", { notBefore: times.notBefore, notAfter: systemClock.now() + fiveDays * 1_000, issuer: root });
    await put({ ...caTexts(short, root) });
    await eventually("its end is told", () => istiod.log().includes("the certificate ends in 5 days"));
    expect(await istiod.metric("citadel_server_cert_chain_expiry_seconds")).toBeLessThanOrEqual(fiveDays);
    const long = await askCertificate(istiod, { token: issuer.token(claims), ttlSeconds: 10 * 86_400 });
    expect(new X509Certificate(long.chain[0] ?? "").validToDate.getTime()).toBe(short.certificate.notAfter);
    await put({ "ca-key.pem": "garbage" });
    await eventually("the fault is shown", async () => (await istiod.metric("istiod_ca_reload_failed")) === 1);
    expect((await askCertificate(istiod, { token: issuer.token(claims) })).roots).toBe(root.certificate.pem);
  });

  it("are not made, and the port stays closed, where the CA is off", async () => {
    const off = await startIstiod({ files: { "mesh.yaml": `services: {ca: false}\n${meshOf(issuer)}` } });
    await expect(readdir(join(off.home, "etc/cacerts"))).rejects.toThrow();
    expect(await answersTls(off.securePort)).toBe(false);
  });
});

describe("a certificate in etc/certs", () => {
  it("is what istiod serves, whoever signed it, and is served anew when it is replaced", async () => {
    const times = { notBefore: systemClock.now() - 3_600_000, notAfter: systemClock.now() + 86_400_000 };
    const acme = await makeCa("acme", times);
    const put = async (home: string, names: readonly string[]): Promise<string> => {
      const { key, pem } = await serverLeaf(acme, names);
      await mkdir(join(home, "etc/certs"), { recursive: true });
      const files = { "key.pem": key, "cert-chain.pem": pem, "root-cert.pem": acme.certificate.pem };
      for (const [name, text] of Object.entries(files)) await writeFile(join(home, "etc/certs", name), text);
      return new X509Certificate(pem).serialNumber;
    };
    const home = await tempDir();
    const first = await put(home, [SERVER_NAME]);
    const istiod = await withIssuer({ env: { ISTIO_HOME: home } });
    expect(await shownSerial(istiod.securePort)).toBe(first);
    const second = await put(home, [SERVER_NAME]);
    await eventually("the new one is shown", async () => (await shownSerial(istiod.securePort)) === second);
    await writeFile(join(home, "etc/certs/key.pem"), "garbage");
    await eventually("the fault is logged", () => istiod.log().includes("the last good one stays in force"));
    expect(await shownSerial(istiod.securePort)).toBe(second);
  });

  it("that is not whole ends the start", async () => {
    const home = await tempDir();
    await mkdir(join(home, "etc/certs"), { recursive: true });
    await writeFile(join(home, "etc/certs/key.pem"), "");
    const ended = await runIstiod({ env: { ISTIO_HOME: home } });
    expect([ended.status, ended.log]).toEqual([1, expect.stringContaining("cert-chain.pem is missing")]);
  });
});

describe("the plaintext port on another address", () => {
  const address = Object.values(networkInterfaces())
    .flatMap((list) => list ?? [])
    .find(({ internal, family }) => !internal && family === "IPv4")?.address;

  it.skipIf(address === undefined)("demands a token (skipped where the machine has no address but loopback)", async () => {
    const port = await freePort("0.0.0.0");
    await withIssuer({ env: { GRPC_ADDR: `0.0.0.0:${port}` } });
    // Loopback is no identity there either: callers of others may be passed on from it.
    for (const host of [address, "127.0.0.1"]) {
      const ask = (token?: string): Promise<string> =>
        firstAnswer({ address: `${host}:${port}`, ...(token !== undefined && { token }) }, nodeOf("shop"));
      expect(await ask()).toContain("UNAUTHENTICATED");
      expect(await ask(issuer.token({ ...claims, ns: "bank" }))).toContain("PERMISSION_DENIED");
      expect(await ask(issuer.token(claims))).toBe("served");
    }
  });
});

describe("xDS over TLS", () => {
  it("is for callers who are what their node says", async () => {
    const istiod = await withIssuer();
    const token = issuer.token(claims);
    const certificate = await askCertificate(istiod, { token });
    for (const who of [{ token }, { certificate }]) {
      expect(await discover(istiod, nodeOf("shop"), who)).toBe("served");
      expect(await discover(istiod, nodeOf("shop", { SERVICE_ACCOUNT: "cart" }), who)).toBe("served");
      expect(await discover(istiod, nodeOf("bank"), who)).toContain("PERMISSION_DENIED");
      expect(await discover(istiod, nodeOf("shop", { NAMESPACE: "bank" }), who)).toContain("PERMISSION_DENIED");
      expect(await discover(istiod, nodeOf("shop", { SERVICE_ACCOUNT: "admin" }), who)).toContain("PERMISSION_DENIED");
    }
    expect(await discover(istiod, nodeOf("shop"), {})).toContain("UNAUTHENTICATED");
    expect(await discover(istiod, nodeOf("shop"), { token: issuer.token({ ...claims, exp: NOW_S - 1 }) })).toContain("UNAUTHENTICATED");
    expect(await istiod.metric("istiod_refused_callers", 'reason="namespace"')).toBe(4);
    expect(await istiod.metric("istiod_refused_callers", 'reason="service account"')).toBe(2);
    expect(await istiod.metric("istiod_refused_callers", 'reason="no credentials"')).toBe(1);
  });

  it("refuses an address that a workload of another namespace has, whatever network the caller says it is in", async () => {
    const objects = [
      "{kind: WorkloadEntry, metadata: {name: teller, namespace: bank}, spec: {address: 10.9.9.9, network: east}}",
      "{kind: WorkloadGroup, metadata: {name: machines, namespace: shop}, spec: {template: {serviceAccount: cart, network: west}}}",
    ].map((object) => `{apiVersion: networking.istio.io/v1, ${object.slice(1)}`);
    const istiod = await withIssuer({ files: { "conf/networks.yaml": objects.join("\n---\n") } });
    const cart = { token: issuer.token(claims) };
    expect(await discover(istiod, nodeOf("shop"), cart)).toContain("belongs to a workload of another namespace");
    expect(await discover(istiod, nodeOf("shop", { NETWORK: "west" }), cart)).toContain("belongs to a workload of another namespace");
    expect(await discover(istiod, nodeOf("shop", { AUTO_REGISTER_GROUP: "machines" }), cart)).toBe("served");
    expect(await discover(istiod, nodeOf("bank"), { token: issuer.token({ ...claims, ns: "bank" }) })).toBe("served");
  });

  it("believes an issuer as soon as mesh.yaml names it, and no longer than that", async () => {
    const istiod = await startIstiod();
    const token = issuer.token(claims);
    expect(await codeOf(askCertificate(istiod, { token }))).toBe(GRPC.UNAUTHENTICATED);
    await istiod.write("mesh.yaml", meshOf(issuer));
    await eventually("the issuer is believed", async () => (await codeOf(askCertificate(istiod, { token }))) === GRPC.OK);
    await istiod.write("mesh.yaml", meshOf(createIssuer("https://id.example.com")));
    await eventually("it is no longer", async () => (await codeOf(askCertificate(istiod, { token }))) === GRPC.UNAUTHENTICATED);
  });

  it("drives a real Envoy that shows its certificate", async () => {
    const v1 = await httpEcho("v1");
    const ports = { service: await freePort(), v1: v1.port, v2: v1.port };
    const istiod = await withIssuer({ files: { "conf/cart.yaml": shopService(ports) } });
    const signed = await askCertificate(istiod, { token: issuer.token(claims) });
    const dir = await tempDir();
    const files = { rootCertFile: join(dir, "root.pem"), certificateFile: join(dir, "cert.pem"), keyFile: join(dir, "key.pem") };
    await writeFile(files.rootCertFile, signed.roots);
    await writeFile(files.certificateFile, signed.chain.join(""));
    await writeFile(files.keyFile, signed.key);
    const proxy = await startProxy({
      xdsPort: istiod.securePort,
      name: "client",
      address: "127.0.0.1",
      tls: { rootCertFile: files.rootCertFile, serverName: SERVER_NAME, client: files },
    });
    await listening(ports.service);
    expect(await tally(10, { port: ports.service, host: SHOP_HOST })).toEqual({ v1: 10 });
    await proxy.assertNothingRejected();
    expect(await istiod.metric("pilot_xds")).toBe(1);
  });
});

describe("strangers on the secure port", () => {
  it("who send garbage or nothing at all, by the hundred, disturb nobody", async () => {
    const istiod = await withIssuer();
    const sockets = Array.from({ length: 300 }, (_, index) => {
      const socket = connect(istiod.securePort, "127.0.0.1");
      socket.on("error", () => {}).resume();
      if (index % 3 === 0) socket.write(Buffer.alloc(2_000, index));
      if (index % 3 === 1) socket.write(Buffer.from("1603010200010001fc0303", "hex"));
      return socket;
    });
    expect(uriOf(await askCertificate(istiod, { token: issuer.token(claims) }))).toContain("/ns/shop/sa/cart");
    await eventually("half-open handshakes are cut", () => sockets.every(({ closed }) => closed));
    expect(uriOf(await askCertificate(istiod, { token: issuer.token(claims) }))).toContain("/ns/shop/sa/cart");
    expect(istiod.log()).not.toContain("error");
  });
});
