import { expect, it } from "vitest";
import { startAgentMesh } from "../support/agent-mesh.ts";
import { call } from "../support/calls.ts";
import { eventually, says } from "../support/wait.ts";

// Tests read what a program writes from sockets, which cannot be opened by name: as under systemd, whose journal is one.
it("access logs go where the agent's own output goes, also where that cannot be opened, and cost nothing when the agent is killed", async () => {
  const { target, client } = await startAgentMesh({
    mesh: "accessLogFile: /dev/stdout\nextensionProviders: [{name: errors, envoyFileAccessLog: {path: /dev/stderr}}]\n",
    config: `
apiVersion: telemetry.istio.io/v1
kind: Telemetry
metadata: {name: both, namespace: shop}
spec: {accessLogging: [{providers: [{name: envoy}, {name: errors}]}]}
`,
  });
  expect((await call({ ...target, path: "/logged" })).by).toBe("cart");
  await says(client, "GET /logged");
  await eventually("both outputs have the line", () => client.log().split("GET /logged").length === 3);
  expect(await client.admin("/stats?filter=update_rejected")).not.toMatch(/: [1-9]/);

  await client.stop("SIGKILL");
  for (let i = 0; i < 20; i++) expect((await call({ ...target, path: "/unlogged" })).by).toBe("cart");
});
