import { mkdtemp, rm, stat } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, assert, beforeEach, describe, expect, it } from "vitest";
import { manualClock } from "../../test/support/manual-clock.ts";
import { holds } from "../../test/support/wait.ts";
import { silentLog } from "../base/log.ts";
import { SigningError } from "../ca/authority.ts";
import { makeCa, type TestCa } from "../ca/ca-fixture.ts";
import { type CertificateApi, SigningRefusal } from "../ca/certificate-api.ts";
import { buildCertificate } from "../pki/build-certificate.ts";
import { readCertificates } from "../pki/certificate.ts";
import { readCsr } from "../pki/csr.ts";
import { readCsrClaims } from "../pki/csr-claims.ts";
import { writePem } from "../pki/pem.ts";
import type { ServerCertificate } from "./own-certificate.ts";
import { signedCertificate } from "./signed-certificate.ts";
import { followSignerRoots, type SignerRoots } from "./signer-roots.ts";

const SIGNER = "example.com/mesh";
const NAMES = ["istiod.istio-system.svc", "istiod"];
const HOUR = 3_600_000;

let dir = "";
beforeEach(async () => {
  dir = await mkdtemp(join(tmpdir(), "signed-"));
});
afterEach(() => rm(dir, { recursive: true, force: true, maxRetries: 20, retryDelay: 50 }));

/** A cluster with one signer, which does as it is told, and a bundle of roots that it publishes. */
async function rig() {
  const clock = manualClock();
  const life = { notBefore: clock.now() - HOUR, notAfter: clock.now() + 1_000 * HOUR };
  const first = await makeCa("first", life);
  const state = { ca: first, fault: undefined as Error | undefined, names: undefined as readonly string[] | undefined, orders: 0 };
  const bundle = { current: first.certificate.pem, changed: () => {} };
  const api: CertificateApi = {
    kept: undefined,
    async sign({ csr }) {
      state.orders += 1;
      if (state.fault !== undefined) throw state.fault;
      const asked = readCsrClaims(csr).names.map(({ value }) => value);
      return leaf(state.ca, { csr, dnsNames: state.names ?? asked, now: clock.now() });
    },
    bundle: () => ({
      get current() {
        return bundle.current;
      },
      ready: async () => {},
      follow(changed) {
        bundle.changed = changed;
      },
    }),
  };
  let server: ServerCertificate | undefined;
  const roots: SignerRoots = await followSignerRoots({
    baseDir: dir,
    mesh: { caCertificates: [] },
    api,
    clock,
    log: silentLog,
    changed: () => server?.refresh(),
  });
  const start = async (kept?: string): Promise<ServerCertificate> => {
    const options = {
      api,
      signer: SIGNER,
      roots,
      dnsNames: NAMES,
      ttlMs: 24 * HOUR,
      clientRoots: () => ["workloads"],
      kept,
      clock,
      log: silentLog,
    };
    server = await signedCertificate({ ...options, random: () => 0.5 });
    return server;
  };
  const another = (): Promise<TestCa> => makeCa("another", life);
  return { start, state, bundle, another, clock };
}

async function leaf(ca: TestCa, { csr, dnsNames, now }: { csr: string; dnsNames: readonly string[]; now: number }): Promise<string> {
  const der = buildCertificate({
    use: { is: "server", dnsNames, addresses: [] },
    keyInfo: (await readCsr(csr)).keyInfo,
    notBefore: now,
    notAfter: now + 24 * HOUR,
    issuer: { key: ca.keys.privateKey, keyInfo: ca.certificate.keyInfo, name: ca.certificate.subject },
  });
  return writePem("CERTIFICATE", der);
}

const serialOf = ({ current }: ServerCertificate): string => {
  const read = readCertificates(current.chain);
  return typeof read === "string" ? assert.fail(read) : (read[0]?.x509.serialNumber ?? "");
};

describe("the control plane's certificate by a signer of the cluster", () => {
  it("is renewed at half its life with another key; a failure leaves the old one in force and is tried again", async () => {
    const { start, clock, state } = await rig();
    const server = await start();
    const before = { serial: serialOf(server), key: server.current.key.reveal() };
    clock.advance(11 * HOUR);
    expect(state.orders).toBe(1);
    state.fault = new SigningError("signer example.com/mesh did not sign within 60 s");
    clock.advance(2 * HOUR);
    await holds(() => expect(server.fault).toContain("did not sign within 60 s"));
    expect(serialOf(server)).toBe(before.serial);
    state.fault = undefined;
    clock.advance(5_000);
    await holds(() => expect(serialOf(server)).not.toBe(before.serial));
    expect(server.current.key.reveal()).not.toBe(before.key);
    expect(server.fault).toBeUndefined();
    expect(state.orders).toBe(3);
    server.stop();
  });

  it("follows the roots of its signer, and tells who shows it", async () => {
    const { start, state, bundle, another } = await rig();
    const server = await start();
    const shown: string[] = [];
    server.follow(({ chain }) => shown.push(chain));
    const next = await another();
    [state.ca, bundle.current] = [next, next.certificate.pem];
    const before = serialOf(server);
    bundle.changed();
    await holds(() => expect(serialOf(server)).not.toBe(before));
    expect(server.roots()).toBe(next.certificate.pem);
    expect(shown.at(-1)).toBe(server.current.chain);
    expect(state.orders).toBe(2);
    server.stop();
  });

  it.for([
    ["a refusal", { fault: new SigningRefusal("the request was denied") }, /istiod has no certificate: the request was denied/],
    ["another name", { names: ["elsewhere"] }, /cannot be used: it is not for istiod.istio-system.svc/],
  ] as const)("ends the start by %s", async ([, told, want]) => {
    const { start, state } = await rig();
    Object.assign(state, told);
    await expect(start()).rejects.toThrow(want);
  });

  it("is waited for where nobody has answered yet", async () => {
    const { start, clock, state } = await rig();
    state.fault = new SigningError("nobody approved the request");
    const starting = start();
    await holds(() => expect(state.orders).toBe(1));
    state.fault = undefined;
    await holds(() => {
      clock.advance(10_000);
      expect(state.orders).toBe(2);
    });
    expect(serialOf(await starting)).not.toBe("");
  });

  it("is kept where keys may be, readable for nobody else, and used again as long as it is good", async () => {
    const { start, clock, state, another, bundle } = await rig();
    const file = join(dir, "server-certificate.json");
    const first = await start(file);
    await expect.poll(async () => (await stat(file)).mode & 0o777).toBe(0o600);
    first.stop();
    const again = await start(file);
    expect(serialOf(again)).toBe(serialOf(first));
    expect(state.orders).toBe(1);
    again.stop();
    clock.advance(25 * HOUR);
    expect(serialOf(await start(file))).not.toBe(serialOf(first));
    const next = await another();
    [state.ca, bundle.current] = [next, next.certificate.pem];
    expect((await start(file)).roots()).toBe(next.certificate.pem);
    expect(state.orders).toBe(3);
  });
});
