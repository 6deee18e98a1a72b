import { mkdir, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { describe, expect, it } from "vitest";
import { tempDir } from "../../../test/support/cleanup.ts";
import { manualClock } from "../../../test/support/manual-clock.ts";
import { eventually } from "../../../test/support/wait.ts";
import { JOIN_ISSUER } from "../../base/join-issuer.ts";
import { MESH_TOKEN } from "../workload-token.ts";
import { firstCertificate } from "./first-certificate.ts";
import type { WorkloadIdentity } from "./workload-identity.ts";

function identityWith(certificate?: object) {
  const followers = new Set<() => void>();
  const follow = (changed: () => void) => {
    followers.add(changed);
    return () => followers.delete(changed);
  };
  return { followers, identity: { certificate: () => certificate, follow } as unknown as WorkloadIdentity };
}

async function machineWithToken(issuer: string): Promise<string> {
  const baseDir = await tempDir("first-certificate-");
  const path = join(baseDir, MESH_TOKEN);
  await mkdir(dirname(path), { recursive: true });
  await writeFile(path, `e30.${Buffer.from(JSON.stringify({ iss: issuer })).toString("base64url")}.c2ln\n`);
  return baseDir;
}

describe("the first certificate", () => {
  it("is waited for where a join token gets it, until it comes or for long enough", async () => {
    const clock = manualClock();
    const baseDir = await machineWithToken(JOIN_ISSUER);
    const [coming, missing] = [identityWith(), identityWith()];
    const over: string[] = [];
    const came = firstCertificate({ identity: coming.identity, baseDir, clock }).then(() => over.push("came"));
    const never = firstCertificate({ identity: missing.identity, baseDir, clock }).then(() => over.push("never"));
    await eventually("both are waited for", () => coming.followers.size + missing.followers.size === 2 && clock.waiting === 2);
    for (const tell of coming.followers) tell();
    await came;
    clock.advance(1_999);
    await Promise.resolve();
    expect(over).toEqual(["came"]);
    clock.advance(1);
    await never;
    expect([coming.followers.size, missing.followers.size, clock.waiting]).toEqual([0, 0, 0]);
  });

  it("is not waited for where there is one, or where its token is good for more", async () => {
    const clock = manualClock();
    const [joining, other] = [await machineWithToken(JOIN_ISSUER), await machineWithToken("https://id.example.com")];
    await firstCertificate({ identity: identityWith({}).identity, baseDir: joining, clock });
    await firstCertificate({ identity: identityWith().identity, baseDir: other, clock });
    await firstCertificate({ identity: identityWith().identity, baseDir: await tempDir("first-certificate-"), clock });
  });
});
