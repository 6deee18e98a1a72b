import { X509Certificate } from "node:crypto";
import { readFile, rename, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { connect } from "node:tls";
import { describe, expect, it, onTestFinished } from "vitest";
import { startAgentProcess } from "../support/agent.ts";
import { meshBelieving, tokenFor } from "../support/agent-mesh.ts";
import { endProcess } from "../support/cleanup.ts";
import { httpEcho } from "../support/echo.ts";
import { PREFACE, settingsFrame } from "../support/http2-frames.ts";
import { answersTls, askCertificate, rootOf, type Signed } from "../support/identity.ts";
import { type Istiod, runIstiod, startIstiod } from "../support/istiod.ts";
import { freePort } from "../support/ports.ts";
import { createIssuer } from "../support/tokens.ts";
import { openVmStream } from "../support/vm-agent.ts";
import { eventually } from "../support/wait.ts";

const issuer = createIssuer("https://id.example.com");

async function startBehindFront(
  env: Readonly<Record<string, string>> = {},
): Promise<{ readonly istiod: Istiod; readonly olderPort: number; envoyPid(): Promise<number> }> {
  const olderPort = await freePort();
  const istiod = await startIstiod({
    files: { "mesh.yaml": `${meshBelieving(issuer)}sidecar: true\n` },
    env: { LEGACY_GRPC_ADDR: `127.0.0.1:${olderPort}`, ...env },
  });
  const envoyPid = async (): Promise<number> => Number(await readFile(join(istiod.home, "var/run/istiod/envoy.pid"), "utf8"));
  onTestFinished(async () => {
    const pid = await envoyPid().catch(() => 0);
    await istiod.stop("SIGKILL");
    if (pid > 1) endProcess(pid);
  });
  return { istiod, olderPort, envoyPid };
}

const nameOf = ({ chain }: Signed): string => new X509Certificate(chain[0] ?? "").subjectAltName ?? "";
const forwarding = ({ chain }: Signed): Readonly<Record<string, string>> => ({
  "x-forwarded-client-cert": `Hash=abc;Cert="${encodeURIComponent(chain[0] ?? "")}"`,
});

describe("istiod behind an Envoy of its own", () => {
  it("serves agents, believes nobody's own word on certificates, and keeps its Envoy running", async () => {
    const { istiod, olderPort, envoyPid } = await startBehindFront();
    for (const socket of ["istiod.sock", "secrets.sock"])
      expect((await stat(join(istiod.home, "var/run/istiod", socket))).mode & 0o777).toBe(0o600);
    await expect(fetch(`http://127.0.0.1:${istiod.grpcPort}`)).rejects.toThrow();

    // By token, then by the certificate that it got, on either port.
    const cart = await askCertificate(istiod, { token: tokenFor(issuer, "cart") });
    expect(nameOf(cart)).toBe("URI:spiffe://cluster.local/ns/shop/sa/cart");
    for (const port of [istiod.securePort, olderPort])
      expect(nameOf(await askCertificate(istiod, { certificate: cart, port }))).toBe("URI:spiffe://cluster.local/ns/shop/sa/cart");

    // What callers write themselves counts for nothing.
    const refused = { code: 16 };
    await expect(askCertificate(istiod)).rejects.toMatchObject(refused);
    await expect(askCertificate(istiod, { headers: forwarding(cart) })).rejects.toMatchObject(refused);
    const web = await askCertificate(istiod, { token: tokenFor(issuer, "web"), headers: forwarding(cart) });
    expect(nameOf(web)).toBe("URI:spiffe://cluster.local/ns/shop/sa/web");
    const spoofed = await askCertificate(istiod, { certificate: web, headers: forwarding(cart) });
    expect(nameOf(spoofed)).toBe("URI:spiffe://cluster.local/ns/shop/sa/web");

    const claim = async (certificate: Signed, serviceAccount: string): Promise<string> =>
      (await openVmStream(istiod, { certificate, metadata: { SERVICE_ACCOUNT: serviceAccount } })).first;
    expect(await claim(web, "web")).toBe("served");
    expect(await claim(web, "cart")).not.toBe("served");
    // More than one connection between the two can carry.
    const many = await Promise.all(Array.from({ length: 120 }, () => claim(web, "web")));
    expect(new Set(many)).toEqual(new Set(["served"]));
    const agent = await startAgentProcess({
      name: "web",
      serviceAccount: "web",
      address: "127.0.0.41",
      istiod: `127.0.0.1:${istiod.securePort}`,
      root: await rootOf(istiod),
      token: tokenFor(issuer, "web"),
    });
    await eventually("istiod knows its caller", async () => (await (await istiod.debug("/debug/syncz")).text()).includes("web.shop"));

    const first = await envoyPid();
    process.kill(first, "SIGKILL");
    await eventually("another Envoy serves", async () => (await envoyPid()) !== first && (await answersTls(istiod.securePort)));
    expect(await claim(web, "web")).toBe("served");
    await agent.ready();

    // One that outlived its istiod holds the ports; the next istiod puts its own in its place, and takes it along when it ends.
    const second = await envoyPid();
    await istiod.stop("SIGKILL");
    await istiod.start();
    expect(await envoyPid()).not.toBe(second);
    expect(nameOf(await askCertificate(istiod, { certificate: web }))).toBe("URI:spiffe://cluster.local/ns/shop/sa/web");
    expect(await istiod.stop()).toBe(0);
    expect(await answersTls(istiod.securePort)).toBe(false);
    expect(await answersTls(olderPort)).toBe(false);
  });

  it("lets go of who connects and never calls, and of nobody who has a call", async () => {
    const { istiod } = await startBehindFront({ GRPC_KEEPALIVE_INTERVAL: "1s" });
    const certificate = await askCertificate(istiod, { token: tokenFor(issuer, "web") });
    const stream = await openVmStream(istiod, { certificate, metadata: { SERVICE_ACCOUNT: "web" } });
    const strangers = [Buffer.alloc(0), Buffer.concat([PREFACE, settingsFrame()])].map((said) => {
      const socket = connect({ port: istiod.securePort, host: "127.0.0.1", rejectUnauthorized: false, ALPNProtocols: ["h2"] });
      onTestFinished(() => void socket.destroy());
      socket.on("error", () => {}).resume();
      socket.write(said);
      return socket;
    });
    await eventually("they are let go of", () => strangers.every(({ closed }) => closed), 20_000);
    expect(await stream.first).toBe("served");
    expect((await istiod.debug("/debug/syncz").then((page) => page.text())).includes("vm.shop")).toBe(true);
  });

  it("ends with one sentence where its Envoy cannot be had, or cannot have the ports", async () => {
    const files = { "mesh.yaml": "sidecar: true\n" };
    const without = await runIstiod({ files, env: { ENVOY_PATH: "/nowhere/envoy" } });
    expect([without.status, without.log]).toEqual([1, expect.stringContaining("ENVOY_PATH names /nowhere/envoy")]);
    const taken = await httpEcho("other");
    const port = { SECURE_GRPC_ADDR: `127.0.0.1:${taken.port}`, LEGACY_GRPC_ADDR: "" };
    const late = await runIstiod({ files, env: port });
    expect([late.status, late.log]).toEqual([1, expect.stringContaining(`takes no calls on port ${taken.port}`)]);
  });

  it("gives its Envoy new roots as soon as they count", async () => {
    const [{ istiod }, other] = [await startBehindFront(), await startIstiod({ files: { "mesh.yaml": meshBelieving(issuer) } })];
    const foreign = await askCertificate(other, { token: tokenFor(issuer, "cart") });
    await expect(askCertificate(istiod, { certificate: foreign })).rejects.toMatchObject({ code: 14 });
    // Where no Envoy of its own stands before it, the header means nothing.
    await expect(askCertificate(other, { headers: forwarding(foreign) })).rejects.toMatchObject({ code: 16 });
    const roots = join(istiod.home, "etc/cacerts/root-cert.pem");
    const [own, theirs] = [await readFile(roots, "utf8"), await readFile(join(other.home, "etc/cacerts/root-cert.pem"), "utf8")];
    await writeFile(`${roots}.new`, own + theirs, { mode: 0o600 });
    await rename(`${roots}.new`, roots);
    await eventually("certificates of the other root count", async () =>
      askCertificate(istiod, { certificate: foreign }).then(
        (signed) => nameOf(signed) === "URI:spiffe://cluster.local/ns/shop/sa/cart",
        () => false,
      ),
    );
  });
});
