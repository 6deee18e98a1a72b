import { systemClock } from "../../src/base/clock.ts";
import { errorOf, readText } from "./api-connection.ts";
import type { KubeClient } from "./kube-client.ts";
import type { KubeObject } from "./kube-object.ts";
import { pathOf } from "./resources.ts";

/** What to follow, and whom to tell. */
export interface WatchOptions<T> {
  readonly client: KubeClient;
  readonly resource: string;
  /** The objects there are, whenever one of them has changed; by `namespace/name`. */
  changed(objects: ReadonlyMap<string, T>): void;
  readonly signal: AbortSignal;
}

/** Follows all objects of a resource until aborted; lists again whenever the watch is lost, after a moment where that fails. */
export async function watchAll<T extends KubeObject>({ client, resource, changed, signal }: WatchOptions<T>): Promise<void> {
  const path = pathOf(await client.resources.named(resource));
  while (!signal.aborted) {
    try {
      const { body } = await client.api.call({ method: "GET", path, signal });
      const list = body as { readonly metadata: { readonly resourceVersion: string }; readonly items: readonly T[] };
      const objects = new Map(list.items.map((object) => [keyOf(object), object]));
      changed(objects);
      const query = { watch: true, resourceVersion: list.metadata.resourceVersion, allowWatchBookmarks: true };
      for await (const { type, object } of events<T>(client, { method: "GET", path, query, signal })) {
        if (type === "ERROR") break;
        if (type === "BOOKMARK") continue;
        if (type === "DELETED") objects.delete(keyOf(object));
        else objects.set(keyOf(object), object);
        changed(objects);
      }
    } catch {
      // The API server is away, or we are to end.
    }
    if (!signal.aborted) await systemClock.sleep(200, signal).catch(() => {});
  }
}

/** How an object is called among those of its kind. */
export const keyOf = ({ metadata }: KubeObject): string =>
  metadata.namespace === undefined ? metadata.name : `${metadata.namespace}/${metadata.name}`;

interface WatchEvent<T> {
  readonly type: "ADDED" | "MODIFIED" | "DELETED" | "BOOKMARK" | "ERROR";
  readonly object: T;
}

async function* events<T>({ api }: KubeClient, call: Parameters<KubeClient["api"]["open"]>[0]): AsyncGenerator<WatchEvent<T>> {
  const response = await api.open(call);
  if (response.statusCode !== 200) throw errorOf(call, response.statusCode ?? 0, await readText(response));
  let rest = "";
  for await (const text of response.setEncoding("utf8")) {
    const lines = (rest + String(text)).split("\n");
    rest = lines.pop() ?? "";
    for (const line of lines) yield JSON.parse(line) as WatchEvent<T>;
  }
}
