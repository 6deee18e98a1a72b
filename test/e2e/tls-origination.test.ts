import { createServer } from "node:https";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import type { TLSSocket } from "node:tls";
import { describe, expect, it, onTestFinished } from "vitest";
import { call } from "../support/calls.ts";
import { createCertificateIssuer, placeFiles, tlsSecret } from "../support/certificates.ts";
import { tempDir } from "../support/cleanup.ts";
import { freePort } from "../support/ports.ts";
import { listening } from "../support/proxy.ts";
import { startSecureIstiod, startSecureProxy } from "../support/secure-proxy.ts";
import { SERVICE_HOST, serviceEntry, startServiceMesh } from "../support/service-mesh.ts";
import { eventually } from "../support/wait.ts";

describe("TLS that a sidecar speaks for its application", () => {
  it("is by the CA, the names and the client certificate in files that a rule names, without an agent", async () => {
    const [ca, clients, strangers] = [
      await createCertificateIssuer("servers"),
      await createCertificateIssuer("clients"),
      await createCertificateIssuer("strangers"),
    ];
    const dir = await tempDir();
    const client = await clients.issue("DNS:client");
    await placeFiles(dir, {
      "cert.pem": client.cert,
      "key.pem": client.key,
      "ca.pem": ca.cert,
      "system.pem": ca.cert,
      "strangers.pem": strangers.cert,
    });
    const seen: { readonly sni: unknown; readonly client: string }[] = [];
    const own = await ca.issue("DNS:api.example.com");
    const server = createServer({ ...own, ca: clients.cert, requestCert: true, rejectUnauthorized: false }, (request, response) => {
      const socket = request.socket as TLSSocket & { readonly servername?: unknown };
      seen.push({ sni: socket.servername, client: socket.authorized ? (socket.getPeerX509Certificate()?.subjectAltName ?? "") : "" });
      response.end("hello");
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    onTestFinished(() => void server.close());
    const rule = (tls: string): string => `trafficPolicy: {tls: {${tls}}}`;
    const { istiod, target, proxy } = await startServiceMesh({
      backends: [{ port: (server.address() as AddressInfo).port }],
      rule: rule(`mode: SIMPLE, sni: api.example.com, caCertificates: ${dir}/ca.pem, subjectAltNames: [api.example.com]`),
      proxy: { metadata: { SYSTEM_ROOTS: join(dir, "system.pem") } },
    });
    expect((await call(target)).body).toBe("hello");
    expect(seen.splice(0)).toEqual([{ sni: "api.example.com", client: "" }]);

    const change = async (tls: string, status: number): Promise<void> => {
      await istiod.write(
        "conf/rule.yaml",
        `{apiVersion: networking.istio.io/v1, kind: DestinationRule, metadata: {name: svc, namespace: shop}, spec: {host: ${SERVICE_HOST}, ${rule(tls)}}}`,
      );
      await eventually(`the answer is ${status} with ${tls}`, async () => (await call(target)).status === status);
    };
    await change(`mode: SIMPLE, sni: api.example.com, caCertificates: ${dir}/ca.pem, subjectAltNames: [other.example.com]`, 503);
    await change(`mode: SIMPLE, sni: api.example.com, caCertificates: ${dir}/ca.pem`, 200);
    await change(`mode: SIMPLE, sni: api.example.com, caCertificates: ${dir}/strangers.pem`, 503);
    await change("mode: SIMPLE, sni: api.example.com", 200);
    await change(`mode: SIMPLE, sni: api.example.com, caCertificates: ${dir}/strangers.pem`, 503);
    await change("mode: SIMPLE, insecureSkipVerify: true", 200);
    await change(`mode: SIMPLE, caCertificates: ${dir}/not-there.pem`, 503);
    seen.length = 0;
    await change(
      `mode: MUTUAL, sni: in.example.com, clientCertificate: ${dir}/cert.pem, privateKey: ${dir}/key.pem, caCertificates: ${dir}/ca.pem`,
      200,
    );
    expect(seen.at(-1)).toEqual({ sni: "in.example.com", client: "DNS:client" });
    await proxy.assertNothingRejected();
  });

  it("is with a credential, where a rule selects the workload", async () => {
    const [ca, clients] = [await createCertificateIssuer("servers"), await createCertificateIssuer("clients")];
    const own = await ca.issue("DNS:api.example.com");
    const names: string[] = [];
    const server = createServer({ ...own, ca: clients.cert, requestCert: true }, (request, response) => {
      names.push((request.socket as TLSSocket).getPeerX509Certificate()?.subjectAltName ?? "");
      response.end("hello");
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    onTestFinished(() => void server.close());
    const port = await freePort();
    const config = `${serviceEntry(port, { backends: [{ port: (server.address() as AddressInfo).port }] })}
---
apiVersion: networking.istio.io/v1
kind: DestinationRule
metadata: {name: svc, namespace: shop}
spec: {host: ${SERVICE_HOST}, workloadSelector: {matchLabels: {app: client}}, trafficPolicy: {tls: {mode: MUTUAL, sni: api.example.com, credentialName: out}}}
${tlsSecret("shop/out", await clients.issue("DNS:client"), { "ca.crt": ca.cert })}`;
    const istiod = await startSecureIstiod({ files: { "conf/all.yaml": config } });
    const proxy = await startSecureProxy(istiod, { name: "client", address: "127.0.0.9", labels: { app: "client" } });
    await listening(port);
    expect((await call({ port, host: SERVICE_HOST })).body).toBe("hello");
    expect(names).toEqual(["DNS:client"]);
    await proxy.assertNothingRejected();
  });

  it("is by roots in a ConfigMap, whomever the rule is for", async () => {
    const [ca, strangers] = [await createCertificateIssuer("servers"), await createCertificateIssuer("strangers")];
    const server = createServer(await ca.issue("DNS:api.example.com"), (_request, response) => void response.end("hello"));
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    onTestFinished(() => void server.close());
    const port = await freePort();
    const roots = (pem: string): string =>
      JSON.stringify({ apiVersion: "v1", kind: "ConfigMap", metadata: { name: "roots", namespace: "shop" }, data: { "ca.crt": pem } });
    const config = `${serviceEntry(port, { backends: [{ port: (server.address() as AddressInfo).port }] })}
---
apiVersion: networking.istio.io/v1
kind: DestinationRule
metadata: {name: svc, namespace: shop}
spec: {host: ${SERVICE_HOST}, trafficPolicy: {tls: {mode: SIMPLE, sni: api.example.com, credentialName: "configmap://shop/roots"}}}`;
    const istiod = await startSecureIstiod({ files: { "conf/all.yaml": config, "conf/roots.yaml": roots(strangers.cert) } });
    const proxy = await startSecureProxy(istiod, { name: "client", address: "127.0.0.10", labels: { app: "client" } });
    await listening(port);
    expect((await call({ port, host: SERVICE_HOST })).status).toBe(503);
    await istiod.write("conf/roots.yaml", roots(ca.cert));
    await eventually("its roots are the server's", async () => (await call({ port, host: SERVICE_HOST })).body === "hello");
    await proxy.assertNothingRejected();
  });
});
