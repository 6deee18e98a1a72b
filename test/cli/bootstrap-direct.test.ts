import assert from "node:assert/strict";
import { join } from "node:path";
import { describe, it } from "vitest";
import { placeFiles } from "../support/certificates.ts";
import { tempDir } from "../support/cleanup.ts";
import { istioctl } from "./cli-host.ts";

describe("istioctl bootstrap --direct", () => {
  it("names files by their whole path and holds no token", async () => {
    const cwd = await tempDir();
    await placeFiles(join(cwd, "etc/cacerts"), { "root-cert.pem": "roots" });
    await placeFiles(join(cwd, "var/run/secrets/tokens"), { "istio-token": "the-token" });
    const { status, out, err } = await istioctl(["bootstrap", "--direct", "--address", "istiod.example.com:15012"], { cwd });
    assert.equal(status, 0, err);
    for (const text of [`${cwd}/etc/cacerts/root-cert.pem`, `${cwd}/var/run/secrets/tokens/istio-token`, "istiod.example.com:15012"])
      assert.ok(out.includes(text), text);
    assert.ok(!out.includes("the-token"));
  });

  it("says what is missing instead", async () => {
    const cwd = await tempDir();
    await placeFiles(cwd, { token: "abc\n", good: "abc" });
    const table: readonly [words: readonly string[], says: string][] = [
      [["--direct"], `there is no token in ${cwd}/var/run/secrets/tokens/istio-token`],
      [["--direct", "--token", join(cwd, "token")], "must hold the token alone"],
      [["--direct", "--token", join(cwd, "good")], "name the file with --root-cert"],
      [["--token", join(cwd, "good")], "--token is of use only with --direct"],
      [["--direct", "--token", join(cwd, "good"), "--root-cert", join(cwd, "good"), "--address", "unix:/x"], "not a socket"],
    ];
    for (const [words, says] of table) {
      const { status, err } = await istioctl(["bootstrap", ...words], { cwd });
      assert.equal(status, 2);
      assert.ok(err.includes(says), err);
    }
  });
});
