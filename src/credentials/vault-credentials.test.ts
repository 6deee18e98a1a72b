import { describe, expect, it, vi } from "vitest";
import { createCertificateIssuer } from "../../test/support/certificates.ts";
import { manualClock } from "../../test/support/manual-clock.ts";
import { startVaultServer, type VaultServer } from "../../test/support/vault-server.ts";
import { holds } from "../../test/support/wait.ts";
import type { Log } from "../base/log.ts";
import { silentLog } from "../base/log.ts";
import { Secret } from "../base/secret.ts";
import type { CredentialSource } from "./credential-source.ts";
import { vaultClient } from "./vault-client.ts";
import { firstOf, vaultCredentials } from "./vault-credentials.ts";

const REF = { namespace: "shop", name: "cert" };
const PATH = "istio/shop/cert";
const MINUTE = 60_000;

function rig(vault: VaultServer, { token = vault.token, log = silentLog }: { readonly token?: string; readonly log?: Log } = {}) {
  const clock = manualClock();
  const changed = vi.fn();
  const client = vaultClient({
    address: vault.address,
    mount: "secret",
    namespace: "",
    access: () => Promise.resolve({ token: new Secret(token) }),
  });
  const source = vaultCredentials({ client, path: "istio/{namespace}/{name}", refreshMs: MINUTE, clock, log, changed });
  const times = (count: number): Promise<boolean> => holds(() => expect(changed).toHaveBeenCalledTimes(count));
  return { source, clock, changed, times };
}

const chainOf = (source: CredentialSource): string | undefined => {
  const looked = source.keyPair(REF);
  return looked.is === "found" ? Buffer.from(looked.value.chain).toString() : undefined;
};

describe("credentials in Vault", () => {
  it("come after the first look, follow new versions, and go when they are deleted", async () => {
    const [vault, ca] = [await startVaultServer(), await createCertificateIssuer("ca")];
    const [one, two] = [await ca.issue("DNS:a"), await ca.issue("DNS:a")];
    vault.put(PATH, { "tls.crt": one.cert, "tls.key": one.key, "ca.crt": ca.cert });
    const { source, clock, changed, times } = rig(vault);
    expect(source.keyPair(REF)).toMatchObject({ is: "absent", reason: expect.stringContaining("not answered yet") });
    await times(1);
    expect(chainOf(source)).toBe(one.cert);
    expect(source.keyPair(REF)).toBe(source.keyPair(REF));
    expect(JSON.stringify(source.keyPair(REF))).not.toContain("PRIVATE KEY");

    expect(source.roots({ ...REF, name: "cert-cacert", in: "Secret" }).is).toBe("found");
    await times(2);
    expect(source.roots({ ...REF, name: "roots", in: "ConfigMap" }).is).toBe("absent");

    clock.advance(MINUTE);
    await holds(() => expect(vault.asked.filter((path) => path === PATH)).toHaveLength(2));
    vault.put(PATH, { cert: two.cert, key: two.key });
    await holds(() => {
      clock.advance(MINUTE);
      expect(chainOf(source)).toBe(two.cert);
    });
    const before = changed.mock.calls.length;
    vault.delete(PATH);
    await holds(() => {
      clock.advance(MINUTE);
      expect(changed.mock.calls.length).toBeGreaterThan(before);
    });
    expect(source.keyPair(REF)).toMatchObject({ is: "absent", reason: expect.stringContaining("there is none") });
  });

  it("that were deleted altogether and written anew between two looks are others, though their version is the same", async () => {
    const [vault, ca] = [await startVaultServer(), await createCertificateIssuer("ca")];
    const [one, two] = [await ca.issue("DNS:a"), await ca.issue("DNS:a")];
    vault.put(PATH, { cert: one.cert, key: one.key });
    const { source, clock, times } = rig(vault);
    source.keyPair(REF);
    await times(1);
    vault.forget(PATH);
    vault.put(PATH, { cert: two.cert, key: two.key });
    await holds(() => {
      clock.advance(MINUTE);
      expect(chainOf(source)).toBe(two.cert);
    });
  });

  it("stay as they were while Vault gives no answer, and that is told", async () => {
    const [vault, ca] = [await startVaultServer(), await createCertificateIssuer("ca")];
    const pair = await ca.issue("DNS:a");
    vault.put(PATH, { "tls.crt": pair.cert, "tls.key": pair.key });
    const { source, clock, times } = rig(vault);
    source.keyPair(REF);
    await times(1);
    expect(source.fault).toBeUndefined();
    vault.seal(true);
    clock.advance(MINUTE);
    await holds(() => expect(source.fault).toContain("Vault is sealed"));
    expect(chainOf(source)).toBe(pair.cert);
    vault.seal(false);
    await holds(() => {
      clock.advance(MINUTE);
      expect(source.fault).toBeUndefined();
    });
    expect(chainOf(source)).toBe(pair.cert);
  });

  it("are not had without the right token, by another path, or where the secret is none", async () => {
    const vault = await startVaultServer();
    const said: unknown[] = [];
    const log = { ...silentLog, warn: (...words: unknown[]) => void said.push(words) };
    const { source } = rig(vault, { token: "wrong-token", log });
    source.keyPair(REF);
    await holds(() => expect(source.fault).toContain("permission denied"));
    expect(JSON.stringify(said)).not.toContain("wrong-token");

    vault.put("istio", { "tls.crt": "x", "tls.key": "y" });
    vault.put(PATH, { "tls.crt": "x", "tls.key": "y" });
    const { source: other, times } = rig(vault);
    other.keyPair(REF);
    await times(1);
    expect(other.keyPair(REF)).toMatchObject({
      is: "broken",
      reason: expect.stringContaining("the Vault secret istio/shop/cert, tls.crt"),
    });
    other.keyPair({ namespace: "shop", name: ".." });
    await holds(() => expect(other.fault).toContain("is no path of a secret"));
    expect(vault.asked).not.toContain("istio/");
  });

  it("are not read without end, nor followed under any number of names", async () => {
    const vault = await startVaultServer();
    vault.put(PATH, { cert: "x".repeat(2 * 1024 * 1024) });
    const { source } = rig(vault);
    const reasonOf = (name: string): string => {
      const looked = source.keyPair({ namespace: "shop", name });
      return looked.is === "found" ? "found" : looked.reason;
    };
    reasonOf(REF.name);
    await holds(() => expect(reasonOf(REF.name)).toContain("answers with more than"));
    for (let number = 1; number < 2_000; number++) expect(reasonOf(`name-${number}`)).toContain("not answered yet");
    expect(reasonOf("one-too-many")).toContain("more than 2000 names");
    source.stop();
  });

  it("are asked for only where no object holds them", () => {
    const source = (is: "absent" | "broken", reason: string): CredentialSource => {
      const answer = { is, reason, objects: [] };
      return { keyPair: () => answer, roots: () => answer };
    };
    expect(firstOf(source("absent", "a"), source("absent", "b")).keyPair(REF)).toMatchObject({ reason: "b" });
    expect(firstOf(source("broken", "a"), source("absent", "b")).keyPair(REF)).toMatchObject({ reason: "a" });
  });
});
