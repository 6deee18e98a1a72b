import { describe, expect, it, onTestFinished } from "vitest";
import { startEnvoy } from "../../src/agent/envoy-process.ts";
import { findEnvoy } from "../../src/agent/find-envoy.ts";
import { systemClock } from "../../src/base/clock.ts";
import { call } from "../support/calls.ts";
import { createCertificateIssuer, tlsSecret } from "../support/certificates.ts";
import { tempDir } from "../support/cleanup.ts";
import { httpEcho } from "../support/echo.ts";
import { freePort } from "../support/ports.ts";
import { listening } from "../support/proxy.ts";
import { startSecureIstiod, startSecureProxy } from "../support/secure-proxy.ts";
import { tlsCall } from "../support/tls-call.ts";
import { eventually } from "../support/wait.ts";

/** A gateway with HTTPS on a port that its Service opens for UDP too, and a server behind it. */
function edgeConfig({ port, server }: { readonly port: number; readonly server: number }): string {
  const ports = ["TCP", "UDP"].map((protocol) => `{name: ${protocol.toLowerCase()}, port: ${port}, protocol: ${protocol}}`).join(", ");
  return `
apiVersion: networking.istio.io/v1
kind: Gateway
metadata: {name: edge, namespace: shop}
spec: {selector: {app: edge}, servers: [{port: {number: ${port}, name: main, protocol: HTTPS}, hosts: ["*"], tls: {mode: SIMPLE, credentialName: shop-cert}}]}
---
apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: {name: svc, namespace: shop}
spec: {hosts: [svc.example.com], location: MESH_INTERNAL, resolution: STATIC, ports: [{number: 80, name: http, protocol: HTTP}], endpoints: [{address: 127.0.0.1, ports: {http: ${server}}}]}
---
apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: {name: svc, namespace: shop}
spec: {hosts: ["*"], gateways: [edge], http: [{route: [{destination: {host: svc.example.com}}]}]}
---
apiVersion: v1
kind: Service
metadata: {name: edge, namespace: shop}
spec: {clusterIP: 10.96.0.9, selector: {app: edge}, ports: [${ports}]}
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: edge-1, namespace: shop, labels: {kubernetes.io/service-name: edge}}
addressType: IPv4
ports: [${ports}]
endpoints: [{addresses: [127.0.0.8], conditions: {ready: true}}]
`;
}

const type = (name: string) => ({ "@type": `type.googleapis.com/${name}` });

/** A client of HTTP/3: an Envoy that takes HTTP/1 on a port and passes it on over QUIC, to a server it verifies by name. */
async function startHttp3Client(to: { readonly port: number; readonly name: string; readonly ca: string }): Promise<number> {
  const [port, adminPort] = [await freePort(), await freePort()];
  const manager = {
    ...type("envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager"),
    stat_prefix: "client",
    http_filters: [{ name: "envoy.filters.http.router", typed_config: type("envoy.extensions.filters.http.router.v3.Router") }],
    route_config: { virtual_hosts: [{ name: "all", domains: ["*"], routes: [{ match: { prefix: "/" }, route: { cluster: "server" } }] }] },
  };
  const tls = {
    sni: to.name,
    common_tls_context: {
      validation_context: {
        trusted_ca: { inline_string: to.ca },
        match_typed_subject_alt_names: [{ san_type: "DNS", matcher: { exact: to.name } }],
      },
    },
  };
  const cluster = {
    name: "server",
    connect_timeout: "5s",
    load_assignment: {
      cluster_name: "server",
      endpoints: [{ lb_endpoints: [{ endpoint: { address: { socket_address: { address: "127.0.0.1", port_value: to.port } } } }] }],
    },
    typed_extension_protocol_options: {
      "envoy.extensions.upstreams.http.v3.HttpProtocolOptions": {
        ...type("envoy.extensions.upstreams.http.v3.HttpProtocolOptions"),
        explicit_http_config: { http3_protocol_options: {} },
      },
    },
    transport_socket: {
      name: "envoy.transport_sockets.quic",
      typed_config: { ...type("envoy.extensions.transport_sockets.quic.v3.QuicUpstreamTransport"), upstream_tls_context: tls },
    },
  };
  const address = (number: number) => ({ socket_address: { address: "127.0.0.1", port_value: number } });
  const envoy = await startEnvoy({
    binary: findEnvoy(process.env),
    workDir: await tempDir(),
    name: "client",
    bootstrap: JSON.stringify({
      admin: { address: address(adminPort) },
      static_resources: {
        listeners: [
          {
            name: "in",
            address: address(port),
            filter_chains: [{ filters: [{ name: "envoy.filters.network.http_connection_manager", typed_config: manager }] }],
          },
        ],
        clusters: [cluster],
      },
    }),
    adminPort,
    clock: systemClock,
  });
  onTestFinished(() => envoy.stop());
  await envoy.ready(30_000);
  return port;
}

describe("HTTP/3", () => {
  it("is served by a gateway beside HTTPS with the same certificate, where PILOT_ENABLE_QUIC_LISTENERS says so", async () => {
    const issuer = await createCertificateIssuer("issuer");
    const echo = await httpEcho("shop");
    const port = await freePort();
    const secret = tlsSecret("shop/shop-cert", await issuer.issue("DNS:shop.example.com"));
    const istiod = await startSecureIstiod({
      files: { "conf/all.yaml": edgeConfig({ port, server: echo.port }) + secret },
      env: { PILOT_ENABLE_QUIC_LISTENERS: "true" },
    });
    const gateway = await startSecureProxy(istiod, { name: "edge", type: "router", address: "127.0.0.8", labels: { app: "edge" } });
    await listening(port);
    const overTcp = await tlsCall({ port, name: "shop.example.com", ca: issuer.cert });
    expect(overTcp).toMatchObject({ status: 200, by: "shop" });

    const client = await startHttp3Client({ port, name: "shop.example.com", ca: issuer.cert });
    const answer = await eventually("the server is reached over QUIC", async () => {
      const one = await call({ port: client, host: "shop.example.com", path: "/over-quic" });
      return one.status === 200 && one;
    });
    expect(answer.by).toBe("shop");
    expect(answer.headers["alt-svc"]).toBe(`h3=":${port}"; ma=86400`);
    expect(echo.hits.at(-1)).toMatchObject({ url: "/over-quic", headers: { "x-forwarded-proto": "https" } });
    expect(await gateway.admin("/stats?filter=downstream_rq_http3_total")).toMatch(/downstream_rq_http3_total: [1-9]/);
    await gateway.assertNothingRejected();
  });
});
