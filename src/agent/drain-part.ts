import { askAdmin } from "./admin-client.ts";
import type { AgentPart } from "./parts.ts";

/**
 * `POST /drain`, which an injected pod's preStop hook calls: a native sidecar is told to end only after the application, so this is how it learns that
 * the end has begun. Envoy takes no new requests from then on and goes on serving those it has.
 */
export const drainPage: AgentPart = ({ config, log, routes, endAtOnce }) => {
  routes.push({
    path: "/drain",
    method: "POST",
    local: true,
    async handle(_, response) {
      if (!config.settings.disableEnvoy) {
        const scope = config.type === "sidecar" ? "inboundonly&" : "";
        await askAdmin(config.proxy.adminPort, `/drain_listeners?${scope}graceful&skip_exit`, "POST");
        log.info("draining: the pod is about to end");
      }
      endAtOnce();
      response.end("OK\n");
    },
  });
};
