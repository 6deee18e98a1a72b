import { create } from "@bufbuild/protobuf";
import type { Any } from "@bufbuild/protobuf/wkt";
import {
  StatefulSessionPerRouteSchema,
  StatefulSessionSchema,
} from "../../gen/envoy/extensions/filters/http/stateful_session/v3/stateful_session_pb.js";
import {
  type HttpFilter,
  HttpFilterSchema,
} from "../../gen/envoy/extensions/filters/network/http_connection_manager/v3/http_connection_manager_pb.js";
import { CookieBasedSessionStateSchema } from "../../gen/envoy/extensions/http/stateful_session/cookie/v3/cookie_pb.js";
import { HeaderBasedSessionStateSchema } from "../../gen/envoy/extensions/http/stateful_session/header/v3/header_pb.js";
import type { Session } from "../../model/session.ts";
import { anyOf } from "../../wire/encode.ts";

/** The filter that leads requests of a session to its endpoint. */
export const SESSION_FILTER = "envoy.filters.http.stateful_session";

/** The filter as a connection manager has it: it does nothing until a route or virtual host says how sessions are kept. */
export const sessionFilter = (): HttpFilter =>
  create(HttpFilterSchema, {
    name: SESSION_FILTER,
    configType: { case: "typedConfig", value: anyOf(StatefulSessionSchema, create(StatefulSessionSchema)) },
  });

/** What a route or virtual host says. The cookie ends with the browser's session: how long a session lives is the server's business. */
export function sessionOverride(session: Session): Any {
  const sessionState =
    session.kind === "cookie"
      ? {
          name: "envoy.http.stateful_session.cookie",
          typedConfig: anyOf(
            CookieBasedSessionStateSchema,
            create(CookieBasedSessionStateSchema, { cookie: { name: session.name, path: session.path } }),
          ),
        }
      : {
          name: "envoy.http.stateful_session.header",
          typedConfig: anyOf(HeaderBasedSessionStateSchema, create(HeaderBasedSessionStateSchema, { name: session.name })),
        };
  return anyOf(
    StatefulSessionPerRouteSchema,
    create(StatefulSessionPerRouteSchema, { override: { case: "statefulSession", value: { sessionState } } }),
  );
}
