import { execFile } from "node:child_process";
import { chmod, mkdir, writeFile } from "node:fs/promises";
import type { AddressInfo } from "node:net";
import { dirname, join } from "node:path";
import { createServer } from "node:tls";
import { describe, expect, it, onTestFinished } from "vitest";
import { examine } from "../../src/agent/doctor/doctor-command.ts";
import { findEnvoy } from "../../src/agent/find-envoy.ts";
import { systemClock } from "../../src/base/clock.ts";
import { makeCa } from "../../src/ca/ca-fixture.ts";
import { privateKeyPem } from "../../src/pki/keys.ts";
import { meshBelieving, tokenFor } from "../support/agent-mesh.ts";
import { tempDir } from "../support/cleanup.ts";
import { askCertificate, rootOf } from "../support/identity.ts";
import { type Istiod, startIstiod } from "../support/istiod.ts";
import { freePort } from "../support/ports.ts";
import { createIssuer, type Issuer } from "../support/tokens.ts";

interface Machine {
  readonly token?: string;
  readonly root?: Buffer | string;
  /** What is left of a certificate. */
  readonly chain?: Buffer | string;
  readonly env?: Readonly<Record<string, string>>;
}

interface Visit {
  readonly status: number;
  readonly text: string;
  /** Lines about one thing. */
  about(name: string): string;
}

/** Runs the doctor on a machine that has nothing but what is given. */
async function visit({ token, root, chain, env = {} }: Machine): Promise<Visit> {
  const home = await tempDir();
  const put = async (file: string, content: Buffer | string | undefined): Promise<void> => {
    if (content === undefined) return;
    await mkdir(dirname(join(home, file)), { recursive: true });
    await writeFile(join(home, file), content);
  };
  await put("var/run/secrets/tokens/istio-token", token);
  await put("etc/certs/root-cert.pem", root);
  await put("etc/certs/cert-chain.pem", chain);
  const bundle = join(import.meta.dirname, "../../dist/istio-agent.mjs");
  const environment = {
    ...process.env,
    ISTIO_HOME: home,
    ENVOY_PATH: findEnvoy(process.env),
    ISTIO_META_INTERCEPTION_MODE: "NONE",
    ...env,
  };
  return new Promise((resolve) => {
    execFile(process.execPath, [bundle, "doctor"], { env: environment }, (error, stdout, stderr) => {
      const text = `${stdout}${stderr}`;
      const about = (name: string): string => new RegExp(`^.* ${name}: .*\\n( +fix: .*\\n)?`, "m").exec(text)?.[0] ?? "";
      resolve({ status: error === null ? 0 : Number(error.code), text, about });
    });
  });
}

async function fakeEnvoy(script: string): Promise<string> {
  const file = join(await tempDir(), "envoy");
  await writeFile(file, `#!/bin/sh\n${script}\n`);
  await chmod(file, 0o755);
  return file;
}

async function startMesh(): Promise<{ readonly istiod: Istiod; readonly issuer: Issuer; readonly good: Machine }> {
  const issuer = createIssuer("https://id.example.com");
  const istiod = await startIstiod({ files: { "mesh.yaml": meshBelieving(issuer) } });
  const good = { token: tokenFor(issuer, "web"), root: await rootOf(istiod), env: { ISTIO_ADDRESS: `127.0.0.1:${istiod.securePort}` } };
  return { istiod, issuer, good };
}

describe("istio-agent doctor", () => {
  it("asks neither for a token nor for roots where no control plane is called", async () => {
    const alone = await visit({ env: { ISTIO_ADDRESS: "", PILOT_ADDRESS: "", CA_ADDR: "", PROXY_CONFIG: "" } });
    expect(alone.status).toBe(0);
    for (const name of ["token", "roots"]) expect(alone.about(name)).toContain("not needed, no control plane is called");
    const plain = await visit({ env: { ISTIO_ADDRESS: `127.0.0.1:15010` } });
    expect(plain.about("token")).toContain("not needed, the control plane is called in plaintext");
  });

  it("finds nothing on a machine that may join, and on each that may not the reason and what to do", async () => {
    const { good, issuer } = await startMesh();
    const healthy = await visit(good);
    expect(healthy.text).not.toMatch(/fix:/);
    expect(healthy.status).toBe(0);
    expect(healthy.about("istiod")).toMatch(/ok {2}.*answers/);
    expect(healthy.about("clock")).toMatch(/ok {2}.*agrees/);
    expect(healthy.about("iptables")).toMatch(/not needed/);
    expect(healthy.text).not.toContain(good.token);

    const now = Math.floor(systemClock.now() / 1_000);
    const withEnv = (env: Record<string, string>): Machine => ({ ...good, env: { ...good.env, ...env } });
    const { token: _, ...withoutToken } = good;
    const { root: __, ...withoutRoot } = good;
    const broken: readonly (readonly [Machine, about: string, says: RegExp])[] = [
      [withoutToken, "token", /there is none.*\n.*fix: put a token/],
      [
        { ...withoutToken, chain: await endedRoot(), env: { ...good.env, OUTPUT_CERTS: "etc/certs" } },
        "token",
        /none, and the certificate of before ended at/,
      ],
      [{ ...good, token: "garbage" }, "token", /no token/],
      [{ ...good, token: tokenFor(issuer, "web", { exp: now - 60 }) }, "token", /it ended at/],
      [{ ...good, token: tokenFor(issuer, "web", { aud: "other" }) }, "token", /not for audience istio-ca/],
      [
        { ...good, token: tokenFor(issuer, "web", { iat: now + 7_200, exp: now + 9_000 }) },
        "clock",
        /behind: the token was made.*\n.*synchronize/,
      ],
      [withoutRoot, "roots", /no root certificate/],
      [{ ...good, root: "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n" }, "roots", /cannot be read/],
      [{ ...good, root: await endedRoot() }, "roots", /all certificates in .* have ended/],
      [{ ...good, root: await otherRoot() }, "istiod", /cannot be verified as istiod\.istio-system\.svc/],
      [withEnv({ ISTIOD_SAN: "elsewhere.example.com" }), "istiod", /cannot be verified as elsewhere\.example\.com/],
      [withEnv({ ISTIO_ADDRESS: `127.0.0.1:${await freePort()}` }), "istiod", /does not answer: .*ECONNREFUSED.*\n.*firewall/],
      [withEnv({ ENVOY_PATH: "/nowhere/envoy" }), "Envoy", /\/nowhere\/envoy.*\n.*fix/],
      [
        withEnv({ ENVOY_PATH: await fakeEnvoy("echo 'envoy  version: 00ff/1.20.1/Clean/RELEASE/BoringSSL'") }),
        "Envoy",
        /1\.20\.1, older than/,
      ],
      [withEnv({ ENVOY_PATH: await fakeEnvoy("echo wrong machine >&2; exit 126") }), "Envoy", /does not run: wrong machine/],
      [
        withEnv({ ISTIO_META_INTERCEPTION_MODE: "REDIRECT", PATH: "/nowhere" }),
        "iptables",
        /iptables-restore is not installed.*\n.*install/,
      ],
      [withEnv({ PROXY_CONFIG: "[" }), "settings", /PROXY_CONFIG cannot be read.*\n.*fix/],
    ];
    for (const [machine, about, says] of broken) {
      const found = await visit(machine);
      expect(found.about(about), found.text).toMatch(says);
      expect(found.about(about)).toMatch(/^failed .*\n +fix: /);
      expect(found.status).toBe(1);
    }
  });
});

describe("what a machine shows", () => {
  it("is shown to the control plane, which says why it does not take it; a join token is not used up by that", async () => {
    const { istiod, good } = await startMesh();
    const stranger = tokenFor(createIssuer("https://stranger.example.com"), "web");
    const refused = await visit({ ...good, token: stranger });
    expect(refused.about("token")).toMatch(
      /^failed +token: 127\.0\.0\.1:\d+ refuses what this machine shows: tokens of this issuer are not accepted\n +fix: put a token/,
    );
    expect(refused.about("istiod")).toMatch(/ok/);
    expect(refused.status).toBe(1);

    const token = await joinToken(istiod);
    const joining = { ...good, token };
    for (const visited of [await visit(joining), await visit(joining)]) expect(visited.text).not.toMatch(/fix:/);
    await askCertificate(istiod, { token });
    expect((await visit(joining)).about("token")).toMatch(
      /refuses what this machine shows: the join token was used before.*\n +fix: put a token/,
    );
  });
});

describe("the clock of a machine", () => {
  it("is compared with the control plane's", async () => {
    const istiod = await startIstiod({ files: {} });
    const host = {
      baseDir: await tempDir(),
      env: { ISTIO_ADDRESS: `127.0.0.1:${istiod.securePort}` },
      type: "sidecar" as const,
      hostname: "web",
      interfaces: [],
      version: "1.30.0",
      print() {},
    };
    const at = async (shiftMs: number): Promise<string> => {
      const findings = await examine(host, { ...systemClock, now: () => systemClock.now() + shiftMs });
      return findings.find(({ about }) => about === "clock")?.says ?? "";
    };
    expect(await at(0)).toMatch(/agrees/);
    expect(await at(3_600_000)).toMatch(/^it is 36\d\d s ahead of 127/);
    expect(await at(-3_600_000)).toMatch(/^it is (3600|359\d) s behind 127/);
  });

  it.for([
    ["CERT_HAS_EXPIRED", -2],
    ["CERT_NOT_YET_VALID", 1],
  ] as const)("is what is looked at where the control plane's certificate is valid at another time (%s)", async ([code, days]) => {
    const now = systemClock.now() + days * 86_400_000;
    const { certificate, keys } = await makeCa("istiod", { notBefore: now, notAfter: now + 3_600_000 });
    const server = createServer({ cert: certificate.pem, key: privateKeyPem(keys.privateKey) }, (socket) => void socket.destroy());
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    onTestFinished(() => void server.close());
    const { port } = server.address() as AddressInfo;
    const { about } = await visit({ root: certificate.pem, token: "a.b.c", env: { ISTIO_ADDRESS: `127.0.0.1:${port}` } });
    expect(about("istiod")).toContain(code);
    expect(about("istiod")).toContain("fix: set this machine's clock");
  });
});

async function joinToken(istiod: Istiod): Promise<string> {
  const body = JSON.stringify({ namespace: "shop", serviceAccount: "cart" });
  const answer = await istiod.debug("/api/workload-token", { method: "POST", headers: { "content-type": "application/json" }, body });
  return ((await answer.json()) as { readonly token: string }).token;
}

async function endedRoot(): Promise<string> {
  const now = systemClock.now();
  return (await makeCa("ended", { notBefore: now - 86_400_000, notAfter: now - 3_600_000 })).certificate.pem;
}

async function otherRoot(): Promise<Buffer> {
  return Buffer.from(await rootOf(await startIstiod({ files: {} })));
}
