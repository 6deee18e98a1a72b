import { execFileSync } from "node:child_process";
import { mkdtemp, readdir, readFile, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { beforeEach, describe, expect, it, onTestFinished } from "vitest";
import { manualClock } from "../../test/support/manual-clock.ts";
import { silentLog } from "../base/log.ts";
import { generateKeys } from "../pki/keys.ts";
import { createAuthority } from "./authority.ts";
import { caTexts, makeCa } from "./ca-fixture.ts";
import { CA_FILES } from "./ca-material.ts";
import { fileRootStore } from "./file-root-store.ts";
import { beginRotation, cancelRotation, finishRotation, rotationOf, switchRoot } from "./rotate-root.ts";

const DAY = 86_400_000;

async function rig() {
  const home = await mkdtemp(join(tmpdir(), "rotate-"));
  onTestFinished(() => rm(home, { recursive: true, force: true, maxRetries: 20, retryDelay: 50 }));
  const directory = join(home, "cacerts");
  const clock = manualClock();
  const store = fileRootStore({ directory, trustDomain: "cluster.local", rootTtlMs: 3_650 * DAY, clock, log: silentLog });
  const old = await store.load();
  const options = { directory, clock, waitMs: DAY, trustDomain: "cluster.local", rootTtlMs: 3_650 * DAY };
  const now = () => store.load(); // What istiod would take now: each step leaves a set that is complete and good.
  return { directory, clock, old, options, now };
}
let one: Awaited<ReturnType<typeof rig>>;
beforeEach(async () => {
  one = await rig();
});

describe("replacing a root", () => {
  it("has both trusted before the new one signs, and until what the old one signed has ended", async () => {
    const { directory, clock, old, options, now } = one;
    await beginRotation(options);
    const begun = await now();
    expect(begun.certificate.raw).toEqual(old.certificate.raw);
    expect(begun.roots).toHaveLength(2);
    expect(await rotationOf(options)).toMatchObject({ step: "begun" });
    for (const name of await readdir(join(directory, "next"))) expect((await stat(join(directory, "next", name))).mode & 0o777).toBe(0o600);

    clock.advance(DAY - 1);
    await expect(switchRoot(options)).rejects.toMatchObject({
      message: expect.stringContaining("too early"),
      hint: expect.stringContaining("--after"),
    });
    clock.advance(1);
    await switchRoot(options);
    const switched = await now();
    expect(switched.certificate.raw).toEqual(begun.roots[1]?.raw);
    expect(switched.roots.map(({ raw }) => raw)).toEqual(begun.roots.map(({ raw }) => raw));
    expect(await readdir(join(directory, "next"))).toEqual(["rotation.json"]);
    expect(begun.intermediates).toEqual([]);
    expect(switched.endsAt).toBe(switched.certificate.notAfter);

    await expect(finishRotation(options)).rejects.toThrow("too early");
    clock.advance(DAY);
    await finishRotation(options);
    const finished = await now();
    expect(finished.certificate.raw).toEqual(switched.certificate.raw);
    expect(finished.roots).toHaveLength(1);
    expect(finished.intermediates).toEqual([]);
    expect((await readdir(directory)).sort()).toEqual([...CA_FILES].sort());
    expect(await rotationOf(options)).toEqual({ step: "none", since: 0 });
  });

  it("leads those to the new one who know the old one only, by what goes with each certificate until the end", async () => {
    const { directory, clock, old, options, now } = one;
    await beginRotation(options);
    await switchRoot({ ...options, waitMs: 0 });
    const switched = await now();
    const authority = createAuthority({ material: switched, clock, defaultTtlMs: DAY, maxTtlMs: DAY });
    const keyInfo = (await generateKeys("P-256")).publicKey.export({ type: "spki", format: "der" });
    const identity = { trustDomain: "cluster.local", namespace: "shop", serviceAccount: "cart" };
    const { certificate, intermediates } = await authority.sign({ identity, keyInfo, ttlMs: 0 });
    const files = { leaf: certificate, chain: intermediates.join(""), old: old.certificate.pem, new: switched.certificate.pem };
    for (const [name, text] of Object.entries(files)) await writeFile(join(directory, name), text);
    const at = String(Math.floor(clock.now() / 1_000));
    for (const root of ["old", "new"]) {
      const words = ["verify", "-x509_strict", "-attime", at, "-no-CApath", "-no-CAfile", "-CAfile", root, "-untrusted", "chain", "leaf"];
      expect(execFileSync("openssl", words, { cwd: directory, encoding: "utf8", stdio: "pipe" })).toContain("leaf: OK");
    }
    await writeFile(join(directory, "root-cert.pem"), switched.certificate.pem);
    expect((await now()).intermediates).toEqual([]);
  });

  it("leaves roots that were trusted beside the old one in force to the end", async () => {
    const { directory, clock, old, options, now } = one;
    const partner = await makeCa("partner", { notBefore: clock.now() - 1_000, notAfter: clock.now() + 365 * DAY });
    await writeFile(join(directory, "root-cert.pem"), `${old.certificate.pem}${caTexts(partner)["root-cert.pem"]}`);
    await beginRotation(options);
    await switchRoot({ ...options, waitMs: 0 });
    await finishRotation({ ...options, waitMs: 0 });
    const finished = await now();
    expect(finished.roots.map(({ raw }) => raw.toString("hex")).sort()).toEqual(
      [finished.certificate.raw, partner.certificate.raw].map((raw) => raw.toString("hex")).sort(),
    );
  });

  it("goes step by step", async () => {
    const { options } = one;
    await expect(switchRoot(options)).rejects.toThrow("no root is being replaced");
    await expect(finishRotation(options)).rejects.toThrow("no root is being replaced");
    await beginRotation(options);
    await expect(beginRotation(options)).rejects.toThrow("already");
    await expect(finishRotation({ ...options, waitMs: 0 })).rejects.toThrow("is begun");
    await switchRoot({ ...options, waitMs: 0 });
    await expect(cancelRotation(options)).rejects.toThrow("only a replacement that has begun");
  });

  it("can be given up before the new one signs", async () => {
    const { directory, old, options, now } = one;
    await beginRotation(options);
    await cancelRotation(options);
    expect((await now()).roots.map(({ raw }) => raw)).toEqual(old.roots.map(({ raw }) => raw));
    expect((await readdir(directory)).sort()).toEqual([...CA_FILES].sort());
  });

  it("is not done where nobody would trust the new one, nor for a CA that another has signed", async () => {
    const { directory, clock, old, options } = one;
    await beginRotation(options);
    await writeFile(join(directory, "root-cert.pem"), old.certificate.pem);
    await expect(switchRoot({ ...options, waitMs: 0 })).rejects.toThrow("nobody would trust");
    expect(await readFile(join(directory, "ca-cert.pem"), "utf8")).toBe(old.certificate.pem);

    await rm(join(directory, "next"), { recursive: true });
    const valid = { notBefore: clock.now() - 1_000, notAfter: clock.now() + DAY };
    const root = await makeCa("root", valid);
    const texts = caTexts(await makeCa("below", { issuer: root, ...valid }), root);
    for (const name of CA_FILES) await writeFile(join(directory, name), texts[name]);
    await expect(beginRotation(options)).rejects.toThrow("signed by another");
  });

  it("that was interrupted while it switched is completed by switching again", async () => {
    const { directory, options, now } = one;
    await beginRotation(options);
    await writeFile(join(directory, "ca-cert.pem"), await readFile(join(directory, "next/ca-cert.pem")));
    await expect(now()).rejects.toThrow("is not the key");
    await switchRoot({ ...options, waitMs: 0 });
    expect((await now()).roots).toHaveLength(2);
  });
});
