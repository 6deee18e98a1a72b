import { mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { create } from "@bufbuild/protobuf";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { manualClock } from "../../test/support/manual-clock.ts";
import { holds } from "../../test/support/wait.ts";
import { silentLog } from "../base/log.ts";
import { makeCa, type TestCa } from "../ca/ca-fixture.ts";
import { type MeshConfig, MeshConfigSchema } from "../gen/istio/mesh/v1alpha1/mesh_config_pb.js";
import { followSignerRoots, type SignerRoots } from "./signer-roots.ts";

const SIGNER = "example.com/mesh";

let dir = "";
let [configured, mounted, published, own] = [] as unknown as TestCa[];
beforeEach(async () => {
  dir = await mkdtemp(join(tmpdir(), "roots-"));
  const life = { notBefore: 0, notAfter: 2_000_000_000_000 };
  [configured, mounted, published, own] = await Promise.all(["mesh", "file", "bundle", "chain"].map((name) => makeCa(name, life)));
});
afterEach(() => rm(dir, { recursive: true, force: true, maxRetries: 20, retryDelay: 50 }));

const pemOf = (ca: TestCa | undefined): string => ca?.certificate.pem ?? "";
const meshWith = (pem: string, ...certSigners: readonly string[]): MeshConfig =>
  create(MeshConfigSchema, { caCertificates: [{ certificateData: { case: "pem", value: pem }, certSigners: [...certSigners] }] });

async function follow(mesh: MeshConfig, bundle = { text: "" }) {
  const clock = manualClock();
  const changes = { count: 0 };
  const api = {
    bundle: () => ({
      get current() {
        return bundle.text;
      },
      ready: async () => {},
      follow() {},
    }),
  };
  const changed = (): void => {
    changes.count += 1;
  };
  const roots = await followSignerRoots({ baseDir: dir, mesh, api, clock, log: silentLog, changed });
  return { roots, clock, changes };
}

const organizations = (roots: SignerRoots, chain: readonly TestCa[] = []): string =>
  roots
    .of(
      SIGNER,
      chain.map(({ certificate }) => certificate),
    )
    .map(({ x509 }) => x509.subject)
    .join();

describe("the roots of a signer", () => {
  it("are those of MeshConfig for it, else the file's, else those the cluster publishes, else that of the chain", async () => {
    await mkdir(join(dir, "etc/external-ca-cert"), { recursive: true });
    const file = join(dir, "etc/external-ca-cert/root-cert.pem");
    const bundle = { text: pemOf(published) };
    const chain = own === undefined ? [] : [own];
    const { roots, clock, changes } = await follow(meshWith(pemOf(configured), "example.com/other", SIGNER), bundle);
    expect(organizations(roots, chain)).toBe("O=mesh");
    roots.meshChanged(meshWith(pemOf(configured), "example.com/other"));
    expect(organizations(roots, chain)).toBe("O=bundle");
    await writeFile(file, pemOf(mounted));
    await holds(() => {
      clock.advance(1_000);
      expect(organizations(roots, chain)).toBe("O=file");
    });
    expect(changes.count).toBe(2);
    await rm(file);
    bundle.text = "";
    await holds(() => {
      clock.advance(1_000);
      expect(organizations(roots, chain)).toBe("O=chain");
    });
    roots.stop();
    await holds(async () => expect(await readFile(join(dir, "var/lib/istio/signer-roots.json"), "utf8")).toContain(SIGNER));
  });

  it("that came with a chain are remembered, over a restart too; others are nobody's", async () => {
    const first = await follow(create(MeshConfigSchema, {}));
    expect(organizations(first.roots)).toBe("");
    expect(organizations(first.roots, own === undefined ? [] : [own])).toBe("O=chain");
    expect(organizations(first.roots)).toBe("O=chain");
    await holds(async () => expect(organizations((await follow(create(MeshConfigSchema, {}))).roots)).toBe("O=chain"));
    expect(first.roots.of("example.com/other")).toEqual([]);
  });

  it("that cannot be read do not count", async () => {
    const { roots } = await follow(meshWith("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----", SIGNER), {
      text: pemOf(published),
    });
    expect(organizations(roots)).toBe("O=bundle");
  });
});
