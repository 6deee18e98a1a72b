import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { mkdir, writeFile } from "node:fs/promises";
import { createServer } from "node:net";
import { dirname, join } from "node:path";
import { promisify } from "node:util";
import { load } from "js-yaml";
import { describe, it, onTestFinished } from "vitest";
import { findEnvoy } from "../../src/agent/find-envoy.ts";
import { messageOf } from "../../src/base/errors.ts";
import { tempDir } from "../support/cleanup.ts";
import { istioctl } from "./cli-host.ts";

interface Bootstrap {
  readonly node: {
    readonly id: string;
    readonly cluster: string;
    readonly metadata: Readonly<Record<string, unknown>>;
    readonly locality?: unknown;
  };
  readonly admin?: unknown;
  readonly dynamicResources: { readonly adsConfig: { readonly apiType: string } };
  readonly staticResources: {
    readonly clusters: readonly { readonly name: string }[];
    readonly listeners?: readonly { readonly name: string }[];
  };
}

async function bootstrap(words: readonly string[], cwd = "/nowhere"): Promise<Bootstrap> {
  const { status, out, err } = await istioctl(["bootstrap", ...words], { cwd });
  assert.equal(status, 0, err);
  return JSON.parse(out) as Bootstrap;
}

describe("istioctl bootstrap", () => {
  it("says who the workload is in Istio's terms", async () => {
    const { node } = await bootstrap([
      "--name",
      "web",
      "-n",
      "shop",
      "--ip",
      "10.0.0.7,fd00::7",
      "--labels",
      "app=web,version=v1",
      "--service-account",
      "web-sa",
      "--locality",
      "r/z/s",
      "--meta",
      "MESH_ID=m",
      "--meta",
      'PROXY_CONFIG={"concurrency":2}',
    ]);
    const { SYSTEM_ROOTS: ofThisMachine, ...metadata } = node.metadata;
    assert.match(String(ofThisMachine ?? "/etc/ssl/"), /^\/etc\//);
    assert.deepEqual(
      { ...node, metadata },
      {
        id: "sidecar~10.0.0.7~web.shop~shop.svc.cluster.local",
        cluster: "web.shop",
        metadata: {
          NAME: "web",
          NAMESPACE: "shop",
          INSTANCE_IPS: "10.0.0.7,fd00::7",
          SERVICE_ACCOUNT: "web-sa",
          STANDARD_METRICS: "true",
          CLUSTER_ID: "Kubernetes",
          ISTIO_VERSION: "1.32.0",
          LABELS: { app: "web", version: "v1" },
          INTERCEPTION_MODE: "REDIRECT",
          WORKLOAD_IDENTITY: "none",
          VHDS: "true",
          ENVOY_STATUS_PORT: 15021,
          ENVOY_PROMETHEUS_PORT: 15090,
          MESH_ID: "m",
          PROXY_CONFIG: { concurrency: 2 },
        },
        locality: { region: "r", zone: "z", subZone: "s" },
      },
    );
  });

  it("says the domain of another cluster", async () => {
    const { node } = await bootstrap(["--name", "web", "-n", "shop", "--ip", "10.0.0.7", "--domain", "shop.svc.example.org"]);
    assert.equal(node.id, "sidecar~10.0.0.7~web.shop~shop.svc.example.org");
  });

  it("refuses what istiod would refuse of an address", async () => {
    const { status, err } = await istioctl(["bootstrap", "--ip", "10.0.0.7,here"]);
    assert.equal(status, 2);
    assert.match(err, /--ip: "here" is no address/);
  });

  it("has defaults for everything: this machine, loopback istiod, delta", async () => {
    const { node, dynamicResources } = await bootstrap([]);
    assert.equal(node.id, "sidecar~192.0.2.1~box.default~default.svc.cluster.local");
    assert.equal(dynamicResources.adsConfig.apiType, "DELTA_GRPC");
    assert.equal((await bootstrap(["--protocol", "sotw"])).dynamicResources.adsConfig.apiType, "GRPC");
  });

  it("leaves out what port 0 turns off", async () => {
    const { admin, staticResources, node } = await bootstrap(["--admin-port", "0", "--readiness-port", "0", "--prometheus-port", "0"]);
    assert.equal(admin, undefined);
    assert.equal(staticResources.listeners, undefined);
    assert.equal(node.metadata.ENVOY_STATUS_PORT, undefined);
  });

  it("gives a router no interception mode, and whole route tables", async () => {
    const { metadata } = (await bootstrap(["--type", "router"])).node;
    assert.deepEqual([metadata.INTERCEPTION_MODE, metadata.VHDS], [undefined, undefined]);
  });

  it("knows an identity where an SDS socket is named, or is in the usual place", async () => {
    const hasIdentity = ({ node, staticResources }: Bootstrap) => [
      node.metadata.WORKLOAD_IDENTITY,
      staticResources.clusters.some(({ name }) => name === "sds-grpc"),
    ];
    const home = await tempDir();
    assert.deepEqual(hasIdentity(await bootstrap([], home)), ["none", false]);
    assert.deepEqual(hasIdentity(await bootstrap(["--sds-socket", "/run/sds"], home)), [undefined, true]);
    const path = join(home, "var/run/secrets/workload-spiffe-uds/socket");
    await mkdir(dirname(path), { recursive: true });
    const server = createServer();
    await new Promise<void>((resolve) => server.listen(path, resolve));
    onTestFinished(() => void server.close());
    assert.deepEqual(hasIdentity(await bootstrap([], home)), [undefined, true]);
  });

  it("prints YAML of the same", async () => {
    const { out } = await istioctl(["bootstrap", "-o", "yaml"]);
    assert.deepEqual(load(out), await bootstrap([]));
  });
});

const envoy = (() => {
  try {
    return { path: findEnvoy(process.env), reason: "" };
  } catch (error) {
    return { path: undefined, reason: messageOf(error) };
  }
})();

describe(`Envoy accepts the bootstrap${envoy.path === undefined ? ` (skipped: ${envoy.reason})` : ""}`, () => {
  const table: Readonly<Record<string, readonly string[]>> = {
    "of a sidecar": ["--name", "web", "-n", "shop", "--ip", "10.0.0.7", "--labels", "app=web", "--locality", "r/z"],
    "of a router over state of the world with an SDS socket": [
      "--type",
      "router",
      "--protocol",
      "sotw",
      "--sds-socket",
      "/tmp/sds.sock",
      "--address",
      "istiod.example:15010",
    ],
    "without any port of its own": ["--admin-port", "0", "--readiness-port", "0", "--prometheus-port", "0"],
    "with an IPv6 control plane": ["--address", "[::1]:15010", "--ip", "fd00::1"],
  };
  for (const [name, words] of Object.entries(table)) {
    it.skipIf(envoy.path === undefined)(name, async () => {
      const file = join(await tempDir(), "bootstrap.json");
      await writeFile(file, JSON.stringify(await bootstrap(words)));
      const { stdout, stderr } = await promisify(execFile)(envoy.path ?? "", ["--mode", "validate", "-c", file]);
      assert.match(`${stdout}${stderr}`, /OK/);
    });
  }
});
