import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import fc from "fast-check";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { assertNothingPolluted, hostileText, mutated } from "../../../test/properties/hostile-text.ts";
import { holds } from "../../../test/support/holds.ts";
import { judgeMesh, loadMesh, type MeshLoad } from "./load-mesh.ts";
import { overClusterMesh } from "./mesh-files.ts";

const MESH = `trustDomain: example.org
trustDomainAliases: [old.example.org]
rootNamespace: istio-system
outboundTrafficPolicy: {mode: REGISTRY_ONLY}
enableTracing: true
accessLogFile: /dev/stdout
connectTimeout: 10s
defaultConfig: &defaults
  proxyMetadata: {ISTIO_META_DNS_CAPTURE: "true"}
  concurrency: 2
  drainDuration: 45s
extensionProviders:
- name: spans
  opentelemetry: {service: collector.obs.svc.cluster.local, port: 4317}
- name: asks
  envoyExtAuthzHttp:
    service: authz.test
    port: 80
    includeRequestHeadersInCheck: [x-a]
listen:
  grpcAddr: 127.0.0.1:15010
env:
  PILOT_ENABLE_REDIS_FILTER: "true"
meshNetworks:
  networks:
    net-1:
      endpoints: [{fromCidr: 10.0.0.0/8}]
      gateways: [{address: 1.2.3.4, port: 15443}]
`;
const NETWORKS = `networks:
  net-2:
    endpoints: [{fromRegistry: Kubernetes}]
    gateways:
    - {address: 2.3.4.5, port: 15443}
`;
const NO_FILES = { layers: [], networks: undefined, faults: [], paths: [], hash: "" };

/** A mesh that is read, or problems that say what is wrong, in which file and, where it is a field that is wrong, on which line. */
function assertVerdict(load: MeshLoad, texts: Readonly<Record<string, string>>): void {
  const problems = load.ok ? load.warnings : load.problems;
  if (!load.ok) expect(problems.length).toBeGreaterThan(0);
  expect(problems.length).toBeLessThanOrEqual(50);
  for (const { file, line, message, path } of problems) {
    expect(message).toMatch(/^[^\0]{5,5000}$/);
    expect(Object.keys(texts)).toContain(file);
    const lines = (texts[file ?? ""] ?? "").split(/\r\n|\r|\n/).length;
    if (line !== undefined) expect(line >= 1 && line <= lines).toBe(true);
    if (path.length > 0) expect({ path, line }).toEqual({ path, line: expect.any(Number) });
  }
  assertNothingPolluted();
}

describe("any text as the mesh of a cluster", () => {
  it("is read, or refused with problems that say where", () => {
    expect(judgeMesh(overClusterMesh(NO_FILES, { title: "t", mesh: MESH, networks: NETWORKS }), { baseDir: "/", env: {} })).toMatchObject({
      ok: true,
    });
    holds(
      fc.property(hostileText([MESH]), (mesh) => {
        const files = overClusterMesh(NO_FILES, { title: "ConfigMap", mesh });
        assertVerdict(judgeMesh(files, { baseDir: "/", env: {} }), { ConfigMap: mesh });
      }),
      { numRuns: 500 },
    );
  });
});

describe("any bytes as mesh.yaml and networks.yaml", () => {
  let base = "";
  beforeEach(async () => {
    base = await mkdtemp(join(tmpdir(), "mesh-text-"));
    await mkdir(join(base, "etc/istio"), { recursive: true });
  });
  afterEach(() => rm(base, { recursive: true, force: true }));

  const bytes = (text: fc.Arbitrary<string>): fc.Arbitrary<Buffer> =>
    fc.oneof(
      { arbitrary: text.map((one) => Buffer.from(one)), weight: 5 },
      fc.uint8Array({ maxLength: 100 }).map((one) => Buffer.from(one)),
    );

  it("are read, or refused with problems that say where", async () => {
    const at = (name: string): string => join(base, "etc/istio", name);
    await holds(
      fc.asyncProperty(bytes(hostileText([MESH])), fc.option(bytes(mutated(NETWORKS))), async (mesh, networks) => {
        await writeFile(at("mesh.yaml"), mesh);
        if (networks === null) await rm(at("networks.yaml"), { force: true });
        else await writeFile(at("networks.yaml"), networks);
        assertVerdict(await loadMesh(base, {}), { [at("mesh.yaml")]: mesh.toString(), [at("networks.yaml")]: networks?.toString() ?? "" });
      }),
      { numRuns: 150 },
    );
  });
});
