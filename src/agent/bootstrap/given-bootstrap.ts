import { eachField } from "../../wire/field-reader.ts";
import { rewriteFields } from "../../wire/rewrite-fields.ts";

/** What a control plane gives, taken apart. */
export interface GivenBootstrap {
  /** What Envoy reads, without the node. */
  readonly bootstrap: Uint8Array;
  /** The part of the workload's ProxyConfig that is about running Envoy, as JSON; empty where nothing is said. */
  readonly proxyConfig: string;
}

/** Entry of the node's metadata in which istiod says how Envoy is to be run: flags of its command line stand in no bootstrap. */
const RUN_SETTINGS = "RUN_PROXY_CONFIG";

const NODE = 1;
const METADATA = 3;

/** Takes the node out of a bootstrap: who the proxy is, the agent knows better, and what else stands there is for the agent. */
export function takeApart(bytes: Uint8Array): GivenBootstrap {
  let proxyConfig = "";
  const bootstrap = rewriteFields(bytes, (field, content) => {
    if (field !== NODE) return content;
    eachField(content, (part, reader) => {
      if (part !== METADATA) return false;
      proxyConfig = textIn(reader.bytes(), RUN_SETTINGS) ?? proxyConfig;
      return true;
    });
    return undefined;
  });
  return { bootstrap, proxyConfig };
}

/** A text in a `google.protobuf.Struct`. */
function textIn(struct: Uint8Array, name: string): string | undefined {
  let found: string | undefined;
  eachField(struct, (field, reader) => {
    if (field !== 1) return false;
    let key = "";
    let value: string | undefined;
    eachField(reader.bytes(), (part, entry) => {
      if (part === 1) key = entry.string();
      else if (part === 2) value = textOf(entry.bytes());
      else return false;
      return true;
    });
    if (key === name) found = value;
    return true;
  });
  return found;
}

function textOf(value: Uint8Array): string | undefined {
  let text: string | undefined;
  eachField(value, (field, reader) => {
    if (field !== 3) return false;
    text = reader.string();
    return true;
  });
  return text;
}
