import { clientConfigs } from "../debug/client-configs.ts";
import type { HttpRoute } from "../debug/http-route.ts";
import { encodedBytes } from "../wire/encode.ts";
import type { Encoded } from "../wire/encoded.ts";
import { GRPC_STATUS } from "../wire/grpc-status.ts";
import { StreamRefusal } from "../xds/refusal.ts";
import type { XdsServer } from "../xds/server.ts";
import type { DebugQuestion } from "./debug-streams.ts";

export interface DebugAnswersOptions {
  readonly xds: Pick<XdsServer, "state">;
  routes(): readonly HttpRoute[];
}

const PAGES = "istio.io/debug";
const PROXIES = "istio.io/debug/syncz";
const CONNECTIONS = "istio.io/connections";

/**
 * What Istio's tools ask over xDS: `istio.io/debug/syncz` for connected proxies, `istio.io/debug` for a debug page by name, `istio.io/connections` for the page of
 * that name. Pages show everybody's configuration, so they are for the control plane's own namespace.
 */
export function debugAnswers({ xds, routes }: DebugAnswersOptions) {
  return async ({ typeUrl, names }: DebugQuestion, namespace: string | undefined): Promise<readonly Encoded[]> => {
    if (typeUrl === PROXIES) return clientConfigs(xds.state(), namespace);
    const [name, ...others] = typeUrl === CONNECTIONS ? ["connections"] : names;
    if (typeUrl !== PAGES && typeUrl !== CONNECTIONS)
      throw new StreamRefusal(GRPC_STATUS.UNIMPLEMENTED, `${typeUrl.slice(0, 100)} is not served; ${PAGES} gives debug pages by name`);
    if (name === undefined || others.length > 0)
      throw new StreamRefusal(GRPC_STATUS.INVALID_ARGUMENT, "name one debug page, as in `config_dump?proxyID=name.namespace`");
    if (namespace !== undefined)
      throw new StreamRefusal(GRPC_STATUS.PERMISSION_DENIED, "debug pages are for callers of the control plane's namespace");
    return [encodedBytes(typeUrl, name, await page(routes(), name))];
  };
}

async function page(routes: readonly HttpRoute[], name: string): Promise<Buffer> {
  const [path = "", query = ""] = name.split("?", 2);
  const route = routes.find((one) => one.path === `/debug/${path}` && one.method === undefined);
  if (route === undefined)
    throw new StreamRefusal(GRPC_STATUS.INVALID_ARGUMENT, `there is no page ${JSON.stringify(path.slice(0, 100))}; \`list\` names all`);
  const { body } = await route.answer(new URLSearchParams(query));
  return Buffer.from(typeof body === "string" ? body : JSON.stringify(body, undefined, 2));
}
