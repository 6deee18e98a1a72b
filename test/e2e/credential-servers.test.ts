import { create, fromBinary, toBinary } from "@bufbuild/protobuf";
import { Server, ServerCredentials, type ServerDuplexStream } from "@grpc/grpc-js";
import { describe, expect, it, onTestFinished } from "vitest";
import { buildSecret } from "../../src/envoy/tls/index.ts";
import { SecretSchema } from "../../src/gen/envoy/extensions/transport_sockets/tls/v3/secret_pb.js";
import { DiscoveryRequestSchema, DiscoveryResponseSchema } from "../../src/gen/envoy/service/discovery/v3/discovery_pb.js";
import { anyOf } from "../../src/wire/encode.ts";
import { createCertificateIssuer, type Issued } from "../support/certificates.ts";
import { httpEcho } from "../support/echo.ts";
import { edgeObjects, startEdge } from "../support/edge-gateway.ts";
import { startIstiod } from "../support/istiod.ts";
import { freePort } from "../support/ports.ts";
import { tlsCall } from "../support/tls-call.ts";
import { eventually } from "../support/wait.ts";

const PATH = "/envoy.service.secret.v3.SecretDiscoveryService/StreamSecrets";

/** An SDS server that has one certificate, whatever it is asked for; gives its port and the names it was asked for. */
async function secretServer({ cert, key }: Issued): Promise<{ readonly port: number; readonly asked: string[] }> {
  const asked: string[] = [];
  const same = (bytes: Buffer): Buffer => bytes;
  const codec = { requestSerialize: same, requestDeserialize: same, responseSerialize: same, responseDeserialize: same };
  const server = new Server();
  server.addService(
    { stream: { path: PATH, requestStream: true, responseStream: true, ...codec } },
    {
      stream: (call: ServerDuplexStream<Buffer, Buffer>) => {
        call.on("error", () => {});
        call.on("data", (bytes: Buffer) => {
          const { resourceNames, typeUrl, responseNonce } = fromBinary(DiscoveryRequestSchema, bytes);
          if (responseNonce !== "") return;
          asked.push(...resourceNames);
          const content = { is: "certificate", chain: Buffer.from(cert), key: Buffer.from(key) } as const;
          const resources = resourceNames.map((name) => anyOf(SecretSchema, buildSecret(name, content)));
          call.write(
            Buffer.from(
              toBinary(DiscoveryResponseSchema, create(DiscoveryResponseSchema, { versionInfo: "1", nonce: "1", typeUrl, resources })),
            ),
          );
        });
      },
    },
  );
  const port = await new Promise<number>((resolve, reject) =>
    server.bindAsync("127.0.0.1:0", ServerCredentials.createInsecure(), (error, bound) =>
      error === null ? resolve(bound) : reject(error),
    ),
  );
  onTestFinished(() => server.forceShutdown());
  return { port, asked };
}

const configuration = ({ edge, web, sds }: { readonly edge: number; readonly web: number; readonly sds: number }): string => `
apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: {name: sds, namespace: shop}
spec:
  hosts: [sds.test]
  location: MESH_EXTERNAL
  resolution: STATIC
  ports: [{number: 2, name: grpc, protocol: GRPC}]
  endpoints: [{address: 127.0.0.1, ports: {grpc: ${sds}}}]
---${edgeObjects({ edge, web, tls: '{mode: SIMPLE, credentialName: "sds://front-door"}' })}`;

describe("credentials of another SDS server", () => {
  it("are asked of the server that the mesh names, by their name there", async () => {
    const issuer = await createCertificateIssuer("elsewhere");
    const [web, sds] = [await httpEcho("web"), await secretServer(await issuer.issue("DNS:edge.test"))];
    const edge = await freePort();
    const istiod = await startIstiod({
      files: {
        "conf/all.yaml": configuration({ edge, web: web.port, sds: sds.port }),
        "mesh.yaml": "extensionProviders: [{name: elsewhere, sds: {name: elsewhere, service: sds.test, port: 2}}]\n",
      },
    });
    const proxy = await startEdge(istiod, edge);
    const answer = await eventually("the gateway has its certificate", () =>
      tlsCall({ port: edge, name: "edge.test", ca: issuer.cert }).catch(() => undefined),
    );
    expect(answer.by).toBe("web");
    expect(((await (await istiod.debug("/debug/problems")).json()) as readonly unknown[]).length).toBe(0);
    expect(new Set(sds.asked)).toEqual(new Set(["front-door"]));
    await proxy.assertNothingRejected();
  });
});
