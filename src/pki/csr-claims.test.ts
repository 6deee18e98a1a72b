import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import fc from "fast-check";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { holds } from "../../test/support/holds.ts";
import { buildCsr, buildServerCsr, CsrError } from "./csr.ts";
import { readCsrClaims } from "./csr-claims.ts";
import { inside, readWhole, TAG } from "./der-reader.ts";
import { oid, sequence, set, utf8 } from "./der-writer.ts";
import { generateKeys } from "./keys.ts";
import { readPem, writePem } from "./pem.ts";

const ID = "spiffe://cluster.local/ns/shop/sa/cart";
let dir = "";
beforeAll(() => {
  dir = mkdtempSync(join(tmpdir(), "claims-"));
});
afterAll(() => rmSync(dir, { recursive: true }));

/** A request made by openssl. */
function opensslCsr(subject: string, ...extensions: readonly string[]): string {
  const csr = join(dir, "req.pem");
  const key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout", join(dir, "key.pem")];
  execFileSync("openssl", ["req", "-new", ...key, "-subj", subject, ...extensions.flatMap((one) => ["-addext", one]), "-out", csr], {
    stdio: "ignore",
  });
  return readFileSync(csr, "utf8");
}

describe("what a request asks for", () => {
  it("is one name, as agents write it", async () => {
    const keys = await generateKeys("P-256");
    expect(readCsrClaims(buildCsr(keys, ID))).toMatchObject({ hasSubject: false, names: [{ type: "uri", value: ID }], hasMore: false });
    const names = ["istiod.istio-system.svc", "istiod"].map((value) => ({ type: "dns", value }));
    expect(readCsrClaims(buildServerCsr(keys, ["istiod.istio-system.svc", "istiod"]))).toMatchObject({ names, hasMore: false });
  });

  it.for([
    ["nothing", "/", [], { hasSubject: false, names: [], hasMore: false }],
    ["a subject", "/O=evil", [], { hasSubject: true }],
    ["several names", "/", [`subjectAltName=URI:${ID},DNS:istiod`], { names: [{ type: "uri" }, { type: "dns" }] }],
    ["the rights of a CA", "/", [`subjectAltName=URI:${ID}`, "basicConstraints=CA:TRUE"], { hasMore: true }],
  ] as const)("by openssl: %s", ([, subject, extensions, want]) => {
    expect(readCsrClaims(opensslCsr(subject, ...extensions))).toMatchObject(want);
  });

  it.for([
    ["", false],
    ["evil", true],
  ] as const)("with the organization %j in the subject: it says something (%s)", async ([organization, hasSubject]) => {
    const [block] = readPem(buildCsr(await generateKeys("P-256"), ID));
    const request = inside(readWhole(block?.bytes ?? Buffer.alloc(0), TAG.SEQUENCE));
    const info = inside(request.take(TAG.SEQUENCE));
    const [version, , ...rest] = [info.any(), info.any(), info.any(), info.any()].map(({ raw }) => raw);
    const subject = sequence(set(sequence(oid("2.5.4.10"), utf8(organization))));
    const changed = sequence(sequence(version ?? Buffer.alloc(0), subject, ...rest), request.any().raw, request.any().raw);
    expect(readCsrClaims(writePem("CERTIFICATE REQUEST", changed))).toMatchObject({ hasSubject, names: [{ value: ID }] });
  });

  it("is given on without anything around it", async () => {
    const csr = buildCsr(await generateKeys("P-256"), ID);
    expect(readCsrClaims(`another text\n${csr}and more`).pem).toBe(csr);
  });

  it("is read or refused as such, whatever byte is changed", async () => {
    const bytes = readPem(buildCsr(await generateKeys("P-256"), ID))[0]?.bytes ?? Buffer.alloc(0);
    holds(
      fc.property(fc.nat(bytes.length - 1), fc.nat(255), (at, value) => {
        const changed = Buffer.from(bytes);
        changed[at] = value;
        try {
          readCsrClaims(writePem("CERTIFICATE REQUEST", changed));
        } catch (error) {
          expect(error).toBeInstanceOf(CsrError);
        }
      }),
    );
  });
});
