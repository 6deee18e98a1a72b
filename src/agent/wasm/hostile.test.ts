import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { holds } from "../../../test/support/holds.ts";
import { isBlockedAddress } from "../../base/blocked-address.ts";
import { readImageReference } from "./image-reference.ts";
import { loginFor, readChallenge } from "./registry-credentials.ts";
import { readRemoteModule } from "./remote-module.ts";
import { isWasm, unpackModule } from "./unpack.ts";

const REGISTRY = new URL("https://images.test");

/** Runs it; what it throws must be an error with a sentence. */
function said<T>(run: () => T): T | undefined {
  try {
    return run();
  } catch (error) {
    expect(error).toBeInstanceOf(Error);
    return undefined;
  }
}

describe("whatever a registry or a user sends", () => {
  it("a name of an image leads to the registry it names, and never out of its paths", () =>
    holds(
      fc.property(fc.oneof(fc.string(), fc.stringMatching(/^[a-z0-9.:/@_-]{0,40}$/)), (text) => {
        const image = said(() => readImageReference(text));
        if (image === undefined) return;
        const url = new URL(`/v2/${image.repository}/manifests/${image.reference}`, "https://x.test");
        expect(url.pathname).toBe(`/v2/${image.repository}/manifests/${image.reference}`);
        expect([url.search, url.hash]).toEqual(["", ""]);
      }),
    ));

  it("a challenge leads to https alone, and to no private address but the registry's own", () =>
    holds(
      fc.property(
        fc.oneof(
          fc.webUrl(),
          fc.ipV4().map((ip) => `https://${ip}/token`),
          fc.string(),
        ),
        (realm) => {
          const challenge = said(() => readChallenge(`Bearer realm="${realm}",service="s"`, REGISTRY));
          if (challenge?.kind !== "bearer") return;
          expect(challenge.realm.protocol).toBe("https:");
          expect(challenge.realm.hostname).not.toMatch(/^(10|192\.168)\./);
        },
      ),
    ));

  it("logins and modules are read, or refused with a word", async () => {
    holds(fc.property(fc.oneof(fc.string(), fc.json()), (text) => void said(() => loginFor("images.test", text))));
    holds(fc.property(fc.uint8Array({ maxLength: 200 }), (bytes) => void said(() => readRemoteModule(bytes))));
    await holds(
      fc.asyncProperty(fc.uint8Array({ maxLength: 2_000 }), fc.constantFrom("", "ustar"), async (bytes, magic) => {
        const archive = Buffer.alloc(Math.max(bytes.length, 600));
        archive.set(bytes);
        archive.write(magic, 257);
        const module = await unpackModule(archive, 10_000).catch((error: unknown) => {
          expect(error).toBeInstanceOf(Error);
          return undefined;
        });
        if (module !== undefined) expect(isWasm(module)).toBe(true);
      }),
    );
  });

  it("no text but an address may be called", () =>
    holds(fc.property(fc.string(), (text) => void expect(isBlockedAddress(text) || /^[\da-f:.%]+$/i.test(text)).toBe(true))));
});
