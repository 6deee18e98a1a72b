import { expect, it } from "vitest";
import { startAgentMesh } from "../support/agent-mesh.ts";
import { call } from "../support/calls.ts";
import { grpcCollector } from "../support/collector.ts";
import { eventually } from "../support/wait.ts";

const PATH = "/envoy.service.accesslog.v3.AccessLogService/StreamAccessLogs";

it("the mesh's access log service is told of requests by proxies that know it", async () => {
  const sink = await grpcCollector([{ path: PATH, stream: true }]);
  const known = { envoyAccessLogService: { address: `127.0.0.1:${sink.port}` } };
  const { target, client } = await startAgentMesh({
    mesh: "enableEnvoyAccessLogService: true\n",
    agents: { proxyConfig: known },
  });
  // What is logged before the service is connected to may be lost, as logs may.
  await eventually("lines of client and server arrive", async () => {
    expect((await call({ ...target, path: "/logged" })).by).toBe("cart");
    return sink.has(PATH, "/logged", "outbound") && sink.has(PATH, "/logged", "inbound");
  });
  expect(sink.received.some(({ body }) => body.includes("http_envoy_accesslog"))).toBe(true);
  expect(await client.admin("/stats?filter=update_rejected")).not.toMatch(/: [1-9]/);
});
