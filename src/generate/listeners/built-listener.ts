import { contentHash } from "../../base/hash.ts";
import type { Engine, Query } from "../../engine/index.ts";
import { buildListener, type ListenerInput } from "../../envoy/listener/listener.ts";
import { ListenerSchema } from "../../gen/envoy/config/listener/v3/listener_pb.js";
import { encoded, sameEncoded } from "../../wire/encode.ts";
import type { Encoded } from "../../wire/encoded.ts";
import { LISTENER_TYPE } from "../../wire/type-urls.ts";

/**
 * Encoded listeners by the content of their input: two namespaces that want the same listener share one. Inputs are made by one piece of code
 * each, so equal ones list their fields in one order.
 */
export function defineBuiltListener({ engine }: { readonly engine: Engine }): Query<ListenerInput, Encoded> {
  return engine.query<ListenerInput, Encoded>({
    name: "listener",
    id: (input) => contentHash(JSON.stringify(input)),
    same: sameEncoded,
    compute: (input) => encoded({ typeUrl: LISTENER_TYPE, name: input.name }, ListenerSchema, buildListener(input)),
  });
}
