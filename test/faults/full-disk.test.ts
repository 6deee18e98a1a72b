import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { X509Certificate } from "node:crypto";
import { appendFileSync, mkdirSync, readdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { status as GRPC } from "@grpc/grpc-js";
import { describe, expect, it, onTestFinished } from "vitest";
import type { JoinAnswer } from "../../src/debug/api-types.ts";
import { CLUSTER_TYPE } from "../../src/wire/type-urls.ts";
import { tempDir } from "../support/cleanup.ts";
import { askCertificate, clientCredentials } from "../support/identity.ts";
import { type Istiod, runIstiod, startIstiod } from "../support/istiod.ts";
import { startSecureIstiod, tokenFor } from "../support/secure-proxy.ts";
import { eventually, says } from "../support/wait.ts";
import { subscribe } from "../support/xds-subscriber.ts";

/*
 * The disk of a control plane is full: what it keeps cannot be written, and whoever asks for something is served or told why not.
 */

const canMount = process.getuid?.() === 0;
if (!canMount) process.stdout.write("a full disk is not tried: mounting a small file system needs root\n");

/** A directory on a disk of its own. */
function mountSmall(dir: string): void {
  mkdirSync(dir, { recursive: true });
  execFileSync("mount", ["-t", "tmpfs", "-o", "size=4m", "small", dir]);
  onTestFinished(() => void execFileSync("umount", ["-l", dir]));
}

/** Leaves no byte of a disk free. */
function fill(dir: string): void {
  for (const size of [64 * 1024, 1]) {
    try {
      for (;;) appendFileSync(join(dir, "filler"), Buffer.alloc(size));
    } catch (error) {
      assert.match(String(error), /ENOSPC/);
    }
  }
}

const entries = (count: number, spec: string): string =>
  Array.from(
    { length: count },
    (_, index) => `{apiVersion: networking.istio.io/v1, kind: ServiceEntry, metadata: {name: host-${index}, namespace: a}, spec: ${spec}}`,
  ).join("\n---\n");

const hostSpec = (host: string): string =>
  `{hosts: [${host}], ports: [{number: 80, name: http, protocol: HTTP}], resolution: DNS, endpoints: [{address: a.example.com}]}`;

describe.skipIf(!canMount)("a control plane whose disk is full", () => {
  it("says so, starts, keeps the last good version in force, and goes on serving", async () => {
    const home = await tempDir();
    const [state, ca] = [join(home, "var/lib/istio"), join(home, "etc/cacerts")];
    for (const dir of [state, ca]) mountSmall(dir);
    const istiod = await startIstiod({ home, files: { "conf/a.yaml": entries(20, hostSpec("a.test")) } });
    assert.ok(readdirSync(ca).length > 0, "its root is elsewhere");
    await istiod.stop();
    for (const kept of ["documents", "receipts"]) rmSync(join(state, kept), { force: true });
    for (const dir of [state, ca]) fill(dir);
    await istiod.start();

    const answers = subscribe({
      ...{ port: istiod.grpcPort, variant: "delta", typeUrl: CLUSTER_TYPE },
      node: { id: "sidecar~10.0.0.1~web.a~a.svc.cluster.local" },
    });
    const isSent = (host: string): boolean =>
      answers.some(({ resources }) => resources.some(({ value }) => Buffer.from(value).includes(host)));
    await eventually("a proxy is served", () => isSent("a.test"));
    await says(istiod, "cannot keep what documents say");
    await says(istiod, "cannot keep what proxies were sent");
    await istiod.write("conf/b.yaml", entries(1, hostSpec("b.test")).replace("host-0", "another"));
    await eventually("a change is delivered", () => isSent("b.test"));
    await istiod.write("conf/a.yaml", entries(20, "{hosts: 5}"));
    await says(istiod, "cannot keep the last good version of an object on disk");
    await istiod.write("conf/c.yaml", entries(1, hostSpec("c.test")).replace("host-0", "third"));
    await eventually("another is delivered", () => isSent("c.test"));
    assert.deepEqual(
      answers.flatMap(({ removed }) => removed),
      [],
    );
    assert.equal(await istiod.metric("pilot_xds"), 1);
    assert.equal((await fetch(`http://127.0.0.1:${istiod.httpPort}/ready`)).status, 200);
  });
});

/** A token with which one machine joins. */
async function joinToken(istiod: Istiod): Promise<string> {
  const answer = await istiod.debug("/api/workload-token", {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ namespace: "shop", serviceAccount: "cart" }),
  });
  return ((await answer.json()) as JoinAnswer).token;
}

/** The gRPC status a request for a certificate is answered with. */
const codeOf = (asked: Promise<unknown>): Promise<number> =>
  asked.then(
    () => GRPC.OK,
    (error: { code: number }) => error.code,
  );

const codesOf = (istiod: Istiod, token: string, count: number): Promise<readonly number[]> =>
  Promise.all(Array.from({ length: count }, () => codeOf(askCertificate(istiod, { token }))));

/** A proxy with a certificate on the secure port; tells whether it has been sent a host. */
async function secureProxy(istiod: Istiod): Promise<(host: string) => boolean> {
  const own = await askCertificate(istiod, { token: tokenFor("shop", "web") });
  const answers = subscribe({
    ...{ port: istiod.securePort, variant: "delta", typeUrl: CLUSTER_TYPE },
    node: { id: "sidecar~10.0.0.2~web.shop~shop.svc.cluster.local" },
    secure: { credentials: await clientCredentials(istiod, own), token: tokenFor("shop", "web") },
  });
  return (host) => answers.some(({ resources }) => resources.some(({ value }) => Buffer.from(value).includes(host)));
}

describe.skipIf(!canMount)("a control plane that signs on a full disk", () => {
  it("signs for who needs no memory of it, and takes no join token whose use it cannot keep, nor one twice", async () => {
    const home = await tempDir();
    const [state, ca] = [join(home, "var/lib/istio"), join(home, "etc/cacerts")];
    for (const dir of [state, ca]) mountSmall(dir);
    const istiod = await startSecureIstiod({ home });
    const isSent = await secureProxy(istiod);
    const [spent, fresh] = [await joinToken(istiod), await joinToken(istiod)];
    const joined = await askCertificate(istiod, { token: spent });
    for (const dir of [state, ca]) fill(dir);

    const assertKept = async (): Promise<void> => {
      assert.equal(await codeOf(askCertificate(istiod, { token: spent })), GRPC.UNAUTHENTICATED);
      assert.ok(!(await codesOf(istiod, fresh, 8)).includes(GRPC.OK));
      assert.equal(await codeOf(askCertificate(istiod, { token: fresh })), GRPC.UNAVAILABLE);
      assert.equal(await codeOf(askCertificate(istiod, { token: tokenFor("shop", "cart") })), GRPC.OK);
      const renewed = new X509Certificate((await askCertificate(istiod, { certificate: joined })).chain[0] ?? "");
      assert.equal(renewed.subjectAltName, "URI:spiffe://cluster.local/ns/shop/sa/cart");
    };
    await assertKept();
    await expect(askCertificate(istiod, { token: fresh })).rejects.toThrow("cannot remember the use of the join token");
    await says(istiod, "make room for");
    assert.ok((await istiod.metric("citadel_server_csr_sign_err_count")) >= 3);
    const late = await joinToken(istiod);
    await istiod.write("conf/b.yaml", entries(1, hostSpec("b.test")).replaceAll("namespace: a", "namespace: shop"));
    await eventually("a proxy on the secure port is told of a change", () => isSent("b.test"));
    assert.equal(await istiod.metric("pilot_xds"), 1);

    await istiod.stop("SIGKILL");
    await istiod.start();
    await assertKept();
    for (const dir of [state, ca]) rmSync(join(dir, "filler"));
    for (const token of [fresh, late]) {
      const codes = await codesOf(istiod, token, 8);
      assert.deepEqual(
        [...codes].sort((a, b) => a - b),
        [GRPC.OK, ...Array<number>(7).fill(GRPC.UNAUTHENTICATED)],
      );
    }
    await istiod.stop("SIGKILL");
    await istiod.start();
    for (const token of [spent, fresh, late]) assert.equal(await codeOf(askCertificate(istiod, { token })), GRPC.UNAUTHENTICATED);
  });

  it("does not begin with a root that it could not keep", async () => {
    const home = await tempDir();
    const ca = join(home, "etc/cacerts");
    mountSmall(ca);
    fill(ca);
    const { status, log } = await runIstiod({ home });
    assert.equal(status, 1);
    assert.match(log, /no root certificate can be made .*no space left.* must be writable at the first start/);
    assert.deepEqual(readdirSync(join(home, "etc")), ["cacerts", "istio"]);
    rmSync(join(ca, "filler"));
    const istiod = await startSecureIstiod({ home });
    assert.equal(await codeOf(askCertificate(istiod, { token: tokenFor("shop", "cart") })), GRPC.OK);
  });
});
