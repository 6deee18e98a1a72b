import { mkdir, mkdtemp, readdir, readFile, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it, onTestFinished } from "vitest";
import type { Clock } from "../base/clock.ts";
import { systemClock } from "../base/clock.ts";
import { generateKeys, privateKeyPem } from "../pki/keys.ts";
import { type Authenticator, createAuthenticator } from "./authenticator.ts";
import { ensureJoinKey, joinKeyPath } from "./join-key.ts";
import { issueJoinToken, joinFault } from "./join-token.ts";
import { joinVerifier } from "./join-verifier.ts";
import { makeToken, tokenKeys } from "./token-fixture.ts";
import { openUsedTokens } from "./used-tokens.ts";

const START = 1_800_000_000_000;
const HOUR = 3_600_000;
const CART = { namespace: "shop", serviceAccount: "cart", ttlMs: HOUR };

async function rig(given?: string) {
  const home = given ?? (await mkdtemp(join(tmpdir(), "join-")));
  onTestFinished(() => rm(home, { recursive: true, force: true, maxRetries: 20, retryDelay: 50 }));
  const hands = { now: START };
  const clock: Clock = { ...systemClock, now: () => hands.now };
  const key = await ensureJoinKey(home);
  const file = join(home, "var/lib/istio/used-join-tokens.json");
  const used = await openUsedTokens(file, clock);
  const authenticator = createAuthenticator({
    clock,
    verifiers: () => [joinVerifier({ key, used, clock })],
    trustDomains: () => ["cluster.local"],
  });
  const issue = (request = CART) => issueJoinToken(key.reveal(), request, hands.now);
  return { home, hands, key, file, used, issue, show: (token: string) => show(authenticator, token) };
}

const show = (authenticator: Authenticator, token: string) =>
  authenticator.authenticate({ certificate: undefined, authorization: `Bearer ${token}` });

describe("a join token", () => {
  it("stands for one identity", async () => {
    const { issue, show } = await rig();
    const { token, expiresAt } = issue();
    expect(expiresAt).toBe(START + HOUR);
    expect(await show(token)).toMatchObject({
      identity: { trustDomain: "cluster.local", namespace: "shop", serviceAccount: "cart" },
      by: "token",
    });
  });

  it("may be shown until its only use is taken, and after a use that came to nothing", async () => {
    const { issue, show } = await rig();
    const { token } = issue();
    const first = await show(token);
    const second = await show(token);
    await first.once?.take();
    await expect(second.once?.take()).rejects.toThrow("used before");
    await expect(show(token)).rejects.toMatchObject({ reason: "token used" });
    await first.once?.giveBack();
    await expect(show(token)).resolves.toBeDefined();
  });

  it("is taken once by many who show it at the same time", async () => {
    const { issue, show } = await rig();
    const { token } = issue();
    const callers = await Promise.all(Array.from({ length: 20 }, () => show(token)));
    const outcomes = await Promise.allSettled(callers.map((caller) => caller.once?.take()));
    expect(outcomes.filter(({ status }) => status === "fulfilled")).toHaveLength(1);
  });

  it("stays used over a restart, and the next one counts", async () => {
    const one = await rig();
    const [spent, fresh] = [one.issue().token, one.issue().token];
    await (await one.show(spent)).once?.take();
    const two = await rig(one.home);
    await expect(two.show(spent)).rejects.toMatchObject({ reason: "token used" });
    await expect(two.show(fresh)).resolves.toBeDefined();
  });

  it("ends when it says, on a clock that was set back too, and may be from a clock that is a little ahead", async () => {
    const { hands, issue, show } = await rig();
    const { token } = issue();
    await (await show(token)).once?.take();
    hands.now = START + HOUR;
    await expect(show(issue({ ...CART, ttlMs: 1_000 }).token)).resolves.toBeDefined();
    await expect(show(token)).rejects.toMatchObject({ reason: "token expired" });
    hands.now = START + 2 * HOUR;
    const later = issue().token;
    await (await show(later)).once?.take(); // What ended is forgotten with this, but not at once.
    hands.now = START + 1_000;
    await expect(show(token)).rejects.toMatchObject({ reason: "token used" });
    hands.now = START + 30 * 24 * HOUR;
    const ahead = issue().token;
    hands.now -= 30_000;
    await expect(show(ahead)).resolves.toBeDefined();
    hands.now -= 60_000;
    await expect(show(ahead)).rejects.toThrow("not valid yet");
  });

  it("is remembered no longer than it could count", async () => {
    const { hands, file, issue, show } = await rig();
    await (await show(issue().token)).once?.take();
    hands.now += 26 * HOUR;
    await (await show(issue().token)).once?.take();
    expect(Object.keys(JSON.parse(await readFile(file, "utf8")))).toHaveLength(1);
  });

  it("is refused for another audience, without an id, from another key", async () => {
    const { key, show, issue } = await rig();
    const keys = { ...tokenKeys("ES256"), privateKey: key.reveal() };
    const claims = { iss: "istiod", aud: ["istio-ca"], sub: "system:serviceaccount:shop:cart", exp: START / 1_000 + 60, jti: "x" };
    const kid = JSON.parse(Buffer.from(issue().token.split(".")[0] ?? "", "base64url").toString()).kid as string;
    const made = (changed: object, by = keys): Promise<unknown> => show(makeToken(by, { ...claims, ...changed }, { kid }));
    await expect(made({})).resolves.toBeDefined();
    await expect(made({ aud: ["other"] })).rejects.toMatchObject({ reason: "token audience" });
    await expect(made({ jti: undefined })).rejects.toMatchObject({ reason: "token malformed" });
    await expect(made({}, tokenKeys("ES256"))).rejects.toMatchObject({ reason: "token signature" });
  });

  it("is not issued for words that cannot be an identity, nor for longer than a week", () => {
    expect(joinFault(CART)).toBeUndefined();
    expect(joinFault({ ...CART, namespace: "shop:x" })).toContain("namespace");
    expect(joinFault({ ...CART, serviceAccount: "" })).toContain("service account");
    expect(joinFault({ ...CART, ttlMs: 8 * 24 * HOUR })).toContain("seven days");
  });
});

describe("the files of join tokens", () => {
  it("are for their owner alone, whole, and made once", async () => {
    const { home, key, file, issue, show } = await rig();
    await (await show(issue().token)).once?.take();
    for (const path of [joinKeyPath(home), file]) expect((await stat(path)).mode & 0o777).toBe(0o600);
    expect((await readdir(join(home, "var/lib/istio"))).sort()).toEqual(["join-token.key", "used-join-tokens.json"]);
    const [again, beside] = await Promise.all([ensureJoinKey(home), ensureJoinKey(home)]);
    expect(again.reveal().equals(key.reveal()) && beside.reveal().equals(key.reveal())).toBe(true);
  });

  it("make istiod refuse to start where they cannot be read, since forgetting would make used tokens good", async () => {
    const { home, file } = await rig();
    for (const text of ["{", "5", "null"]) {
      await writeFile(file, text);
      await expect(openUsedTokens(file, systemClock)).rejects.toThrow("used join tokens");
    }
    await rm(file);
    await mkdir(file);
    await expect(openUsedTokens(file, systemClock)).rejects.toThrow("used join tokens");
    const other = privateKeyPem((await generateKeys("RSA-2048")).privateKey);
    for (const text of ["no key", other]) {
      await writeFile(joinKeyPath(home), text);
      await expect(ensureJoinKey(home)).rejects.toMatchObject({ hint: expect.stringContaining("remove it") });
    }
  });

  it("hold no more uses than can be remembered: beyond that none is taken rather than one forgotten", async () => {
    const { home, file } = await rig();
    await mkdir(join(file, ".."), { recursive: true });
    await writeFile(file, JSON.stringify(Object.fromEntries(Array.from({ length: 100_000 }, (_, i) => [`id-${i}`, START + HOUR]))));
    const { hands, issue, show, used } = await rig(home);
    await expect((await show(issue().token)).once?.take()).rejects.toThrow("too many join tokens");
    expect(used.isUsed("id-0")).toBe(true);
    hands.now += 26 * HOUR;
    await expect((await show(issue().token)).once?.take()).resolves.toBeUndefined();
    expect(used.isUsed("id-0")).toBe(false);
  });

  it("that cannot be written refuse the use", async () => {
    const { file, issue, show } = await rig();
    await mkdir(`${file}.tmp`);
    const { token } = issue();
    await expect((await show(token)).once?.take()).rejects.toMatchObject({ code: "state_unwritable", hint: expect.stringContaining(file) });
    await rm(`${file}.tmp`, { recursive: true });
    await expect((await show(token)).once?.take()).resolves.toBeUndefined();
  });
});
