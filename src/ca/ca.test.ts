import { execFileSync } from "node:child_process";
import { generateKeyPairSync, X509Certificate } from "node:crypto";
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { manualClock } from "../../test/support/manual-clock.ts";
import { holds } from "../../test/support/wait.ts";
import { systemClock } from "../base/clock.ts";
import { silentLog } from "../base/log.ts";
import { buildCertificate } from "../pki/build-certificate.ts";
import { generateKeys, privateKeyPem } from "../pki/keys.ts";
import { writePem } from "../pki/pem.ts";
import { createAuthority, SigningError } from "./authority.ts";
import { caTexts, makeCa, type TestCa } from "./ca-fixture.ts";
import { CA_FILES, type CaMaterial, type CaTexts, readCaMaterial } from "./ca-material.ts";
import { warnOfExpiry } from "./expiry-warnings.ts";
import { fileRootStore } from "./file-root-store.ts";
import type { RootNews, RootStore } from "./root-store.ts";

const HOUR = 3_600_000;
const DAY = 24 * HOUR;
const YEAR = 365 * DAY;
const ID = { trustDomain: "cluster.local", namespace: "shop", serviceAccount: "cart" };

let dir = "";
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), "ca-"));
});
afterEach(() => rmSync(dir, { recursive: true, force: true, maxRetries: 20, retryDelay: 50 }));

const storeIn = (directory: string, clock = systemClock): RootStore =>
  fileRootStore({ directory, trustDomain: "cluster.local", rootTtlMs: 10 * YEAR, clock, log: silentLog });

function put(directory: string, texts: Partial<CaTexts>): void {
  mkdirSync(directory, { recursive: true });
  for (const [name, text] of Object.entries(texts)) writeFileSync(join(directory, name), text, { mode: 0o600 });
}

function material(texts: CaTexts, now: number): CaMaterial {
  const read = readCaMaterial(texts, now);
  if (typeof read === "string") throw new Error(read);
  return read;
}

const valid = (years = 1) => ({ notBefore: systemClock.now() - HOUR, notAfter: systemClock.now() + years * YEAR });

describe("the root on disk", () => {
  it("is made where there is nothing, readable by its owner alone, and found again", async () => {
    const at = join(dir, "etc/cacerts");
    const made = await storeIn(at).load();
    expect(readdirSync(at).sort()).toEqual([...CA_FILES].sort());
    expect([...CA_FILES.map((name) => join(at, name)), at].map((path) => statSync(path).mode & 0o077)).toEqual([0, 0, 0, 0, 0]);
    expect(readdirSync(join(dir, "etc"))).toEqual(["cacerts"]);
    expect(made.certificate.x509.subject).toBe("O=cluster.local");
    expect((await storeIn(at).load()).certificate.raw).toEqual(made.certificate.raw);
  });

  it("is made once by two who start at the same time, also in a directory that holds something else", async () => {
    const at = join(dir, "cacerts");
    const [one, two] = await Promise.all([storeIn(at).load(), storeIn(at).load()]);
    expect(one.certificate.raw).toEqual(two.certificate.raw);
    const other = join(dir, "other");
    put(other, {});
    writeFileSync(join(other, "README"), "");
    await storeIn(other).load();
    expect(readdirSync(other)).toHaveLength(5);
  });

  it("is never made beside what is left of another", async () => {
    const texts = caTexts(await makeCa("root", valid()));
    for (const missing of CA_FILES) {
      const at = join(dir, missing);
      put(at, { ...texts });
      rmSync(join(at, missing));
      await expect(storeIn(at).load()).rejects.toThrow(`${missing} is missing`);
      expect(readdirSync(at)).toHaveLength(3);
    }
  });

  it("is not made where nothing can be written, and the fault says what to do", async () => {
    writeFileSync(join(dir, "etc"), "no directory");
    await expect(storeIn(join(dir, "etc/cacerts")).load()).rejects.toMatchObject({
      code: "ca_unusable",
      hint: expect.stringContaining("must be writable"),
    });
  });

  it("is refused where a file cannot be read", async () => {
    const at = join(dir, "cacerts");
    put(at, caTexts(await makeCa("root", valid())));
    rmSync(join(at, "ca-key.pem"));
    mkdirSync(join(at, "ca-key.pem"));
    await expect(storeIn(at).load()).rejects.toThrow("ca-key.pem cannot be read");
  });
});

describe("a set of certificates", () => {
  it("may be an intermediate's, whatever cert-chain.pem repeats", async () => {
    const root = await makeCa("root", valid(10));
    const upper = await makeCa("upper", { ...valid(5), issuer: root });
    const lower = await makeCa("lower", { ...valid(2), issuer: upper, kind: "RSA-2048" });
    const texts = caTexts(lower, upper, root);
    const read = material(texts, systemClock.now());
    expect(read.intermediates.map(({ x509 }) => x509.subject)).toEqual(["O=lower", "O=upper"]);
    expect(read.endsAt).toBe(lower.certificate.notAfter);
    const other = await makeCa("next root", valid(10));
    const both = material({ ...texts, "root-cert.pem": other.certificate.pem + root.certificate.pem }, systemClock.now());
    expect(both.roots).toHaveLength(2);
  });

  it("leads to the root that lasts longest: one that was renewed with its key may stand beside the old one, before it or after", async () => {
    const now = systemClock.now();
    const { keys, certificate: fresh } = await makeCa("root", valid(10));
    const again = (times: { readonly notBefore: number; readonly notAfter: number }): Promise<TestCa> => makeCa("root", { ...times, keys });
    const [ended, ending, coming] = await Promise.all([
      again({ notBefore: now - YEAR, notAfter: now - DAY }),
      again({ notBefore: now - YEAR, notAfter: now + DAY }),
      again({ notBefore: now + DAY, notAfter: now + 20 * YEAR }),
    ]);
    const middle = await makeCa("middle", { ...valid(5), issuer: ending });
    for (const other of [ended, ending, coming])
      for (const roots of [other.certificate.pem + fresh.pem, fresh.pem + other.certificate.pem]) {
        const own = material({ ...caTexts({ keys, certificate: fresh }), "root-cert.pem": roots }, now);
        expect([own.endsAt, own.intermediates]).toEqual([fresh.notAfter, []]);
        const below = material({ ...caTexts(middle), "root-cert.pem": roots }, now);
        expect([below.endsAt, below.intermediates]).toEqual([
          middle.certificate.notAfter,
          [expect.objectContaining({ pem: middle.certificate.pem })],
        ]);
      }
    expect(readCaMaterial({ ...caTexts(middle), "root-cert.pem": ended.certificate.pem }, now)).toContain("ended on");
  });

  it("is judged as a whole", async () => {
    const now = systemClock.now();
    const [root, other] = [await makeCa("root", valid()), await makeCa("root", valid())];
    const old = await makeCa("old", { notBefore: now - YEAR, notAfter: now - DAY });
    const early = await makeCa("early", { notBefore: now + DAY, notAfter: now + YEAR });
    const [good, foreign] = [caTexts(root), caTexts(other)];
    const cases: readonly (readonly [Partial<CaTexts>, string])[] = [
      [{ "ca-key.pem": foreign["ca-key.pem"] }, "ca-key.pem is not the key"],
      [{ "root-cert.pem": foreign["root-cert.pem"], "cert-chain.pem": "" }, "not signed by any root"],
      [{ "ca-cert.pem": "" }, "ca-cert.pem: it holds no certificate"],
      [{ "root-cert.pem": "garbage" }, "root-cert.pem: it holds no certificate"],
      [{ "ca-key.pem": good["ca-cert.pem"] }, "no private key"],
      [{ "cert-chain.pem": good["ca-key.pem"] }, "beside certificates"],
      [caTexts(old), "ended on"],
      [caTexts(early), "not valid before"],
      [{ "ca-crl.pem": good["ca-cert.pem"] }, "ca-crl.pem: it holds no revocation list"],
    ];
    for (const [change, reason] of cases) expect(readCaMaterial({ ...good, ...change }, now)).toContain(reason);
    const ed = generateKeyPairSync("ed25519");
    const edInfo = ed.publicKey.export({ type: "spki", format: "der" });
    const edCa = buildCertificate({
      use: { is: "ca" },
      keyInfo: edInfo,
      organization: "ed",
      ...valid(),
      issuer: { key: ed.privateKey, keyInfo: edInfo },
    });
    const edTexts = { "ca-cert.pem": writePem("CERTIFICATE", edCa), "ca-key.pem": privateKeyPem(ed.privateKey), "cert-chain.pem": "" };
    expect(readCaMaterial({ ...edTexts, "root-cert.pem": edTexts["ca-cert.pem"] }, now)).toContain("Envoy verifies no Ed25519");
    const leaf = await createAuthority({ material: material(good, now), clock: systemClock, defaultTtlMs: DAY, maxTtlMs: DAY }).sign({
      identity: ID,
      keyInfo: other.certificate.keyInfo,
      ttlMs: 0,
    });
    expect(readCaMaterial({ ...foreign, "ca-cert.pem": leaf.certificate, "root-cert.pem": good["root-cert.pem"] }, now)).toContain(
      "not the certificate of a CA",
    );
  });
});

/** As much of a list as is looked at: its frame, and that it is a sequence. */
const REVOKED = `-----BEGIN X509 CRL-----\n${Buffer.from([0x30, 0x00]).toString("base64")}\n-----END X509 CRL-----\n`;

describe("new files", () => {
  it("take effect while running; a set half written or wrong leaves the last good in force and is told", async () => {
    const at = join(dir, "cacerts");
    const store = storeIn(at);
    const first = await store.load();
    const told: RootNews[] = [];
    const stop = store.follow((news) => told.push(news));
    const next: TestCa = await makeCa("next", valid());
    writeFileSync(join(at, "ca-cert.pem"), next.certificate.pem);
    await holds(() => expect(told.at(-1)).toHaveProperty("fault"));
    put(join(dir, "fresh"), caTexts(next));
    for (const name of CA_FILES) renameSync(join(dir, "fresh", name), join(at, name));
    // Files may be looked at between one and the next of them, which is one more fault.
    await holds(() => expect(told.at(-1)).toHaveProperty("material"));
    const news = told.flatMap((one) => ("material" in one ? [one.material] : []));
    expect(new Set(news.map(({ certificate }) => certificate.raw.equals(next.certificate.raw)))).toEqual(new Set([true]));
    expect(first.certificate.raw.equals(next.certificate.raw)).toBe(false);
    stop();
  });

  it("may say what was revoked, now or later, and no more", async () => {
    const at = join(dir, "cacerts");
    const store = storeIn(at);
    expect((await store.load()).revoked).toBe("");
    const told: RootNews[] = [];
    const stop = store.follow((news) => told.push(news));
    writeFileSync(join(at, "ca-crl.pem"), REVOKED);
    await holds(() => expect(told).toHaveLength(1));
    expect(told[0]).toMatchObject({ material: { revoked: REVOKED.trim() } });
    expect((await storeIn(at).load()).revoked).toBe(REVOKED.trim());
    rmSync(join(at, "ca-crl.pem"));
    await holds(() => expect(told).toHaveLength(2));
    expect(told[1]).toMatchObject({ material: { revoked: "" } });
    stop();
  });
});

describe("signing", () => {
  const now = systemClock.now();
  const authorityOf = (of: CaMaterial, clock = systemClock) =>
    createAuthority({ material: of, clock, defaultTtlMs: DAY, maxTtlMs: 90 * DAY });

  it("gives a chain that openssl verifies, for the caller's identity and nobody else", async () => {
    const root = await makeCa("root", valid(10));
    const middle = await makeCa("middle", { ...valid(2), issuer: root });
    const keys = await generateKeys("P-256");
    const issued = await authorityOf(material(caTexts(middle, root), now)).sign({
      identity: ID,
      keyInfo: keys.publicKey.export({ type: "spki", format: "der" }),
      ttlMs: 0,
    });
    for (const [name, text] of Object.entries({ leaf: issued.certificate, chain: issued.intermediates.join(""), roots: issued.roots }))
      writeFileSync(join(dir, name), text);
    const words = ["verify", "-x509_strict", "-CAfile", join(dir, "roots"), "-untrusted", join(dir, "chain"), join(dir, "leaf")];
    expect(execFileSync("openssl", words, { encoding: "utf8" })).toContain(": OK");
    const leaf = new X509Certificate(readFileSync(join(dir, "leaf")));
    expect(leaf.subjectAltName).toBe("URI:spiffe://cluster.local/ns/shop/sa/cart");
    expect(leaf.checkPrivateKey(keys.privateKey)).toBe(true);
    expect(leaf.validFromDate.getTime()).toBeLessThan(now - 60_000);
    const young = await makeCa("young", { ...valid(), notBefore: Math.floor(now / 1_000) * 1_000 - 5_000 });
    const early = await authorityOf(material(caTexts(young), now)).sign({ identity: ID, keyInfo: young.certificate.keyInfo, ttlMs: 0 });
    expect(new X509Certificate(early.certificate).validFromDate.getTime()).toBe(young.certificate.notBefore);
  });

  it("calls the key of the CA what its certificate calls it, however that was made", async () => {
    const [key, cert, config] = [join(dir, "key"), join(dir, "cert"), join(dir, "config")];
    const extensions = "[ext]\nbasicConstraints = critical,CA:true\nsubjectKeyIdentifier = 0102030405\n";
    writeFileSync(config, `[req]\ndistinguished_name = name\nx509_extensions = ext\n[name]\n${extensions}`);
    const words = "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 10 -subj /O=other".split(" ");
    execFileSync("openssl", [...words, "-config", config, "-keyout", key, "-out", cert], { stdio: "ignore" });
    const [ca, keyText] = [readFileSync(cert, "utf8"), readFileSync(key, "utf8")];
    const texts = { "ca-cert.pem": ca, "ca-key.pem": keyText, "cert-chain.pem": "", "root-cert.pem": ca };
    const { publicKey } = await generateKeys("P-256");
    const keyInfo = publicKey.export({ type: "spki", format: "der" });
    const { certificate } = await authorityOf(material(texts, systemClock.now())).sign({ identity: ID, keyInfo, ttlMs: 0 });
    writeFileSync(join(dir, "leaf"), certificate);
    expect(execFileSync("openssl", ["verify", "-CAfile", cert, join(dir, "leaf")], { encoding: "utf8" })).toContain(": OK");
  });

  it("lasts a day unless asked otherwise, never longer than the limit or the issuer", async () => {
    const clock = manualClock();
    const of = async (endsIn: number): Promise<CaMaterial> =>
      material(caTexts(await makeCa("root", { notBefore: clock.now() - DAY, notAfter: clock.now() + endsIn })), clock.now());
    const authority = authorityOf(await of(10 * YEAR), clock);
    const { keyInfo } = authority.material.certificate;
    const ttlOf = async (ttlMs: number): Promise<number> => (await authority.sign({ identity: ID, keyInfo, ttlMs })).notAfter - clock.now();
    expect([await ttlOf(0), await ttlOf(-5), await ttlOf(HOUR), await ttlOf(YEAR), await ttlOf(Number.MAX_SAFE_INTEGER)]).toEqual([
      DAY,
      DAY,
      HOUR,
      90 * DAY,
      90 * DAY,
    ]);
    authority.replace(await of(2 * HOUR));
    expect(await ttlOf(0)).toBe(2 * HOUR);
    clock.advance(2 * HOUR);
    await expect(ttlOf(0)).rejects.toThrow(SigningError);
  });

  it("gives nothing that would end before it begins, where the clock was set back to long before the CA was made", async () => {
    const root = await makeCa("root", valid());
    const signAt = (at: number): Promise<unknown> =>
      authorityOf(material(caTexts(root), now), { ...systemClock, now: () => at }).sign({
        identity: ID,
        keyInfo: root.certificate.keyInfo,
        ttlMs: 0,
      });
    await expect(signAt(now - 2 * HOUR)).resolves.toHaveProperty("certificate");
    await expect(signAt(now - 3 * DAY)).rejects.toThrow(/not valid before .* clock says/);
  });
});

describe("the end of the CA", () => {
  it("is announced 30, 7 and 1 days before, once each, and daily after", () => {
    const clock = manualClock();
    const lines: string[] = [];
    const note = (_: unknown, text?: string): void => void lines.push(text ?? "");
    let endsAt = clock.now() + 40 * DAY;
    const { look, stop } = warnOfExpiry({
      clock,
      log: { ...silentLog, warn: note, error: note },
      endings: () => [{ name: "root", endsAt }],
    });
    for (let day = 0; day < 42; day++) clock.advance(DAY);
    endsAt = clock.now() + 3 * DAY;
    look();
    look();
    stop();
    clock.advance(DAY * 10);
    expect(lines).toEqual([
      "the certificate ends in 30 days",
      "the certificate ends in 7 days",
      "the certificate ends in 1 day",
      "the certificate has ended: nothing it signed is valid",
      "the certificate has ended: nothing it signed is valid",
      "the certificate has ended: nothing it signed is valid",
      "the certificate ends in 3 days",
    ]);
  });
});
