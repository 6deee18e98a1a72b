import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { call } from "../support/calls.ts";
import { createCertificateIssuer, type Issued, placeFiles, writePair } from "../support/certificates.ts";
import { tempDir } from "../support/cleanup.ts";
import { httpEcho } from "../support/echo.ts";
import { edgeObjects, startEdge } from "../support/edge-gateway.ts";
import { startIstiod } from "../support/istiod.ts";
import { freePort } from "../support/ports.ts";
import { listening, startProxy } from "../support/proxy.ts";

/** Node metadata that names a certificate in files; `side` is the end of the connection that shows it. */
async function filesOf(side: "CLIENT" | "SERVER", issued: Issued, roots: string): Promise<Readonly<Record<string, string>>> {
  const { certFile, keyFile } = await writePair(issued);
  const dir = await tempDir();
  await placeFiles(dir, { "ca.pem": roots });
  return { [`TLS_${side}_CERT_CHAIN`]: certFile, [`TLS_${side}_KEY`]: keyFile, [`TLS_${side}_ROOT_CERT`]: join(dir, "ca.pem") };
}

const configuration = ({ port, edge, server }: { readonly port: number; readonly edge: number; readonly server: number }): string => `
apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: {name: edge, namespace: shop}
spec:
  hosts: [edge.test]
  location: MESH_INTERNAL
  resolution: STATIC
  ports: [{number: ${port}, name: http, protocol: HTTP}]
  endpoints: [{address: 127.0.0.1, ports: {http: ${edge}}}]
---
apiVersion: networking.istio.io/v1
kind: DestinationRule
metadata: {name: edge, namespace: shop}
spec: {host: edge.test, trafficPolicy: {tls: {mode: ISTIO_MUTUAL, sni: edge.test, subjectAltNames: [edge.test]}}}
---${edgeObjects({ edge, web: server, tls: "{mode: ISTIO_MUTUAL}" })}`;

describe("certificates in files that node metadata names", () => {
  it("stand in for the mesh's at both ends of mutual TLS, without an agent", async () => {
    const [ours, theirs] = [await createCertificateIssuer("ours"), await createCertificateIssuer("theirs")];
    const web = await httpEcho("web");
    const [port, edge] = [await freePort(), await freePort()];
    const istiod = await startIstiod({ files: { "conf/all.yaml": configuration({ port, edge, server: web.port }) } });
    const gateway = await startEdge(istiod, edge, await filesOf("SERVER", await ours.issue("DNS:edge.test"), ours.cert));
    const startClient = async (name: string, issued: Issued) => {
      const metadata = await filesOf("CLIENT", issued, ours.cert);
      const proxy = await startProxy({ xdsPort: istiod.grpcPort, name, address: "127.0.0.9", metadata });
      await listening(port);
      return proxy;
    };

    const client = await startClient("client", await ours.issue("URI:spiffe://ours/ns/shop/sa/client"));
    expect((await call({ port, host: "edge.test" })).by).toBe("web");
    expect(String(web.hits.at(-1)?.headers["x-forwarded-client-cert"])).toContain("URI=spiffe://ours/ns/shop/sa/client");
    await client.assertNothingRejected();
    await client.stop();

    const stranger = await startClient("stranger", await theirs.issue("URI:spiffe://ours/ns/shop/sa/client"));
    expect((await call({ port, host: "edge.test" })).status).toBe(503);
    expect(web.hits).toHaveLength(1);
    await stranger.assertNothingRejected();
    await gateway.assertNothingRejected();
  });
});
