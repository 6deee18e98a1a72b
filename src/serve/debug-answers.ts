import type { Clock } from "../base/clock.ts";
import { createSlice } from "../base/slice.ts";
import type { ConfigDump } from "../debug/api-types.ts";
import { clientConfigs } from "../debug/client-configs.ts";
import { encodedDump } from "../debug/encoded-dump.ts";
import type { HttpAnswer, HttpRoute } from "../debug/http-route.ts";
import { NOT_CONNECTED_HERE } from "../debug/page.ts";
import { encodedBytes } from "../wire/encode.ts";
import type { Encoded } from "../wire/encoded.ts";
import { GRPC_STATUS } from "../wire/grpc-status.ts";
import { messageRegistry } from "../wire/json.ts";
import { StreamRefusal } from "../xds/refusal.ts";
import type { XdsServer } from "../xds/server.ts";
import type { DebugQuestion } from "./debug-streams.ts";
import { jsonPieces } from "./send-answer.ts";

export interface DebugAnswersOptions {
  readonly xds: Pick<XdsServer, "state">;
  routes(): readonly HttpRoute[];
  readonly clock: Pick<Clock, "monotonic">;
}

const PAGES = "istio.io/debug";
const PROXIES = "istio.io/debug/syncz";
const DUMP = "istio.io/debug/config_dump";
const CONNECTIONS = "istio.io/connections";

/** An answer is one message, which has to be in memory at once. */
const LARGEST_PAGE = 64 * 1024 * 1024;

/**
 * What Istio's tools ask over xDS: `istio.io/debug/syncz` for connected proxies, `istio.io/debug/config_dump` for what one of them has, `istio.io/debug` for a debug page by name,
 * `istio.io/connections` for the page of that name. Who is of another namespace than the control plane is shown what concerns its own, as over HTTP; pages that do something are not asked this way.
 */
export function debugAnswers(options: DebugAnswersOptions) {
  return async ({ typeUrl, names }: DebugQuestion, namespace: string | undefined): Promise<readonly Encoded[]> => {
    if (typeUrl === PROXIES) return clientConfigs(options.xds.state(), namespace);
    const [name, ...others] = typeUrl === CONNECTIONS ? ["connections"] : names;
    if (typeUrl !== PAGES && typeUrl !== CONNECTIONS && typeUrl !== DUMP)
      throw new StreamRefusal(GRPC_STATUS.UNIMPLEMENTED, `${typeUrl.slice(0, 100)} is not served; ${PAGES} gives debug pages by name`);
    if (name === undefined || others.length > 0)
      throw new StreamRefusal(GRPC_STATUS.INVALID_ARGUMENT, "name one debug page, as in `config_dump?proxyID=name.namespace`");
    if (typeUrl === DUMP) return dumpOf(options, name, namespace);
    const { body } = await answerOf(options, name, namespace);
    return [encodedBytes(typeUrl, name, await pageBytes(body, options))];
  };
}

/** What a proxy has, as Envoy's own messages. */
async function dumpOf(options: DebugAnswersOptions, proxy: string, namespace: string | undefined): Promise<readonly Encoded[]> {
  const { status, body } = await answerOf(options, `config_dump?proxyID=${encodeURIComponent(proxy)}`, namespace);
  if (status !== 200) return [encodedBytes(DUMP, proxy, Buffer.from(NOT_CONNECTED_HERE))];
  return encodedDump(body as ConfigDump, { registry: await messageRegistry(), pause: createSlice(options.clock) });
}

async function answerOf({ routes }: DebugAnswersOptions, name: string, namespace: string | undefined): Promise<HttpAnswer> {
  const [path = "", query = ""] = name.split("?", 2);
  const route = routes().find((one) => one.path === `/debug/${path}` && one.method === undefined);
  if (route === undefined)
    throw new StreamRefusal(GRPC_STATUS.INVALID_ARGUMENT, `there is no page ${JSON.stringify(path.slice(0, 100))}; \`list\` names all`);
  if (route.acts === true)
    throw new StreamRefusal(GRPC_STATUS.PERMISSION_DENIED, `${path} is for those who hold the debug token, over HTTP`);
  const give = namespace === undefined ? route.answer : route.within?.(namespace);
  if (give === undefined) throw new StreamRefusal(GRPC_STATUS.PERMISSION_DENIED, `${path} is for callers of the control plane's namespace`);
  return give(new URLSearchParams(query));
}

async function pageBytes(body: unknown, { clock }: DebugAnswersOptions): Promise<Buffer> {
  if (typeof body === "string") return Buffer.from(body);
  const pieces: Buffer[] = [];
  let size = 0;
  for await (const piece of jsonPieces(body, clock)) {
    size += pieces[pieces.push(Buffer.from(piece)) - 1]?.length ?? 0;
    if (size > LARGEST_PAGE)
      throw new StreamRefusal(GRPC_STATUS.RESOURCE_EXHAUSTED, "this page is too large for one message; ask for it over HTTP");
  }
  return Buffer.concat(pieces);
}
