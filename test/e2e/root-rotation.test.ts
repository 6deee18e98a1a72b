import { execFile } from "node:child_process";
import { X509Certificate } from "node:crypto";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { fromBinary } from "@bufbuild/protobuf";
import { expect, it } from "vitest";
import { ProxyConfigSchema } from "../../src/gen/istio/mesh/v1alpha1/proxy_config_pb.js";
import { PROXY_CONFIG_TYPE } from "../../src/wire/type-urls.ts";
import { startAgentMesh, tokenFor } from "../support/agent-mesh.ts";
import { call } from "../support/calls.ts";
import { askCertificate, rootOf, type Signed } from "../support/identity.ts";
import { type Istiod, startIstiod } from "../support/istiod.ts";
import { openVmStream } from "../support/vm-agent.ts";
import { eventually } from "../support/wait.ts";
import { subscribe } from "../support/xds-subscriber.ts";

const ISTIOCTL = join(import.meta.dirname, "../../dist/istioctl.mjs");
const run = promisify(execFile);

const istioctl = async ({ home, httpPort }: Istiod, ...words: readonly string[]): Promise<string> => {
  const env = { ...process.env, ISTIO_HOME: home, HTTP_ADDR: `127.0.0.1:${httpPort}` };
  return (await run(process.execPath, [ISTIOCTL, "x", ...words], { env, cwd: home })).stdout.trim();
};

const STRICT =
  "{apiVersion: security.istio.io/v1, kind: PeerAuthentication, metadata: {name: all, namespace: shop}, spec: {mtls: {mode: STRICT}}}";

const isSignedBy = ({ chain }: Signed, root: X509Certificate): boolean => new X509Certificate(chain[0] ?? "").verify(root.publicKey);
const countIn = (pem: string): number => pem.split("BEGIN CERTIFICATE").length - 1;

it("a root is replaced without a moment at which a workload is not trusted", async () => {
  const istiod = await startIstiod();
  const node = { id: "sidecar~127.0.0.1~client.shop~shop.svc.cluster.local" };
  const answers = subscribe({ port: istiod.grpcPort, variant: "delta", node, typeUrl: PROXY_CONFIG_TYPE });
  const told = (): number =>
    countIn(fromBinary(ProxyConfigSchema, answers.at(-1)?.resources[0]?.value ?? new Uint8Array()).caCertificatesPem.join(""));
  const oldRoot = new X509Certificate(await rootOf(istiod));
  const first = await askCertificate(istiod, { token: await istioctl(istiod, "workload", "token", "-n", "shop") });
  await eventually("the agent knows one root", () => told() === 1);

  expect(await istioctl(istiod, "ca", "rotate", "begin")).toContain("Next: istioctl x ca rotate switch");
  await eventually("the agent knows both", () => told() === 2);
  const between = await askCertificate(istiod, { certificate: first });
  expect([isSignedBy(between, oldRoot), countIn(between.roots)]).toEqual([true, 2]);
  await expect(istioctl(istiod, "ca", "rotate", "switch")).rejects.toMatchObject({ stderr: expect.stringContaining("too early") });

  await istioctl(istiod, "ca", "rotate", "switch", "--after", "0");
  const newRoot = new X509Certificate(await readFile(join(istiod.home, "etc/cacerts/ca-cert.pem")));
  const renewed = await eventually("the new root signs", async () => {
    const signed = await askCertificate(istiod, { certificate: between });
    return isSignedBy(signed, newRoot) && signed;
  });
  expect(countIn(renewed.roots)).toBe(2);
  for (const certificate of [between, renewed]) expect(await (await openVmStream(istiod, { certificate })).first).toBe("served");

  await istioctl(istiod, "ca", "rotate", "finish", "--after", "0");
  await eventually("the agent knows the new one alone", () => told() === 1);
  expect(await (await openVmStream(istiod, { certificate: renewed })).first).toBe("served");
  await eventually("the old one counts no more", () =>
    askCertificate(istiod, { certificate: between }).then(
      () => false,
      (error: { code: number }) => error.code === 16 || error.code === 14,
    ),
  );
  expect(await istioctl(istiod, "ca", "rotate")).toBe("No root is being replaced.");
});

it("a workload that was away meanwhile comes back with the old root alone, and is trusted; at the end the new root is enough", async () => {
  const { istiod, issuer, client, server, target } = await startAgentMesh({ config: STRICT });
  const oldRoot = await rootOf(istiod);
  const passes = (): Promise<boolean> => eventually("a request passes", async () => (await call(target)).status === 200);
  await passes();
  await client.stop();
  await istioctl(istiod, "ca", "rotate", "begin");
  await istioctl(istiod, "ca", "rotate", "switch", "--after", "0");
  const newRoot = new X509Certificate(await readFile(join(istiod.home, "etc/cacerts/ca-cert.pem")));
  await eventually("the new root signs", async () => {
    const signed = await askCertificate(istiod, { token: tokenFor(issuer, "web"), roots: oldRoot.toString() });
    return isSignedBy(signed, newRoot);
  });
  expect(await readFile(join(client.home, "etc/certs/root-cert.pem"))).toEqual(oldRoot);
  client.start();
  await client.ready();
  await passes();
  expect(await client.admin("/certs")).toContain(newRoot.serialNumber.toLowerCase());

  // Both hold what the new root signed before the old one is forgotten.
  await server.stop();
  server.start();
  await server.ready();
  await istioctl(istiod, "ca", "rotate", "finish", "--after", "0");
  const oldSerial = new X509Certificate(oldRoot).serialNumber.toLowerCase();
  for (const agent of [client, server])
    await eventually("the old root is forgotten", async () => !(await agent.admin("/certs")).includes(oldSerial));
  const envoy = await client.envoyPid();
  process.kill(envoy, "SIGKILL");
  await eventually("another Envoy runs", async () => (await client.envoyPid()) !== envoy);
  await client.ready();
  await passes();
});
