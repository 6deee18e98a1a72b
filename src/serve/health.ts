import type { HttpRoute } from "./http-server.ts";

/** One thing that must hold before the control plane may serve, or that an operator should know about. */
export interface HealthCheck {
  readonly name: string;
  readonly ok: boolean;
  /** A failing check that does not block: what is in force goes on being served. */
  readonly blocks: boolean;
  readonly detail: string;
}

/** `/ready`: 200 once everything was loaded. A source that fails later does not make it unready: last good is served. */
export function readyRoute(checks: () => readonly HealthCheck[]): HttpRoute {
  return {
    path: "/ready",
    open: true,
    about: "whether the first configuration is loaded; ?verbose says more",
    answer(query) {
      const all = checks();
      const ready = all.every(({ ok, blocks }) => ok || !blocks);
      if (!query.has("verbose"))
        return {
          status: ready ? 200 : 503,
          body: ready
            ? "ok\n"
            : `not ready: ${all
                .filter(({ ok, blocks }) => !ok && blocks)
                .map(({ name }) => name)
                .join(", ")}\n`,
        };
      return { status: ready ? 200 : 503, body: { ready, checks: all } };
    },
  };
}
