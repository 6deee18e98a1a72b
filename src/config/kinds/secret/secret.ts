import { createHmac, randomBytes } from "node:crypto";
import { Secret } from "../../../base/secret.ts";
import { keyPairFault } from "../../../pki/key-pair.ts";
import type { Report } from "../../kind-def.ts";
import type { ConfigObject } from "../../object.ts";
import { defined } from "../../parse/defined.ts";
import { kubeKind } from "../kube-kind.ts";

/** What a mesh reads of a Kubernetes Secret. Values print as "[redacted]"; whoever needs one reveals it. */
export interface KubernetesSecret {
  readonly type?: string;
  /** Names of the entries, sorted. */
  readonly names: readonly string[];
  readonly data: Readonly<Record<string, Secret>>;
  /** Names of the entries that were written as text, under `stringData`. */
  readonly texts: readonly string[];
  /** Changes whenever a value does. Keyed with a number of this process alone, so that it tells nobody anything. */
  readonly fingerprint: string;
}

/** Made at first use and not when this module is loaded: a snapshot of the process (`tools/snapshot.mjs`) would give every process the same. */
let madeKey: Buffer | undefined;
function fingerprintKey(): Buffer {
  madeKey ??= randomBytes(32);
  return madeKey;
}

const BASE64 = /^[A-Za-z0-9+/\s]*={0,2}\s*$/;

export const secret = kubeKind<KubernetesSecret>({
  kind: "Secret",
  group: "",
  versions: ["v1"],
  plural: "secrets",
  singular: "secret",
  shortNames: [],
  read(document) {
    const data: Record<string, Secret> = {};
    const fingerprint = createHmac("sha256", fingerprintKey());
    const texts = new Map(Object.entries(document.map("stringData")).map(([name, text]) => [name, Buffer.from(text)]));
    for (const [name, text] of Object.entries(document.map("data"))) {
      if (!BASE64.test(text)) document.wrong(["data", name], "base64");
      else if (!texts.has(name)) texts.set(name, Buffer.from(text, "base64"));
    }
    const names = [...texts.keys()].sort();
    const written = Object.keys(document.map("stringData")).sort();
    for (const name of names) {
      const value = new Uint8Array(texts.get(name) ?? []);
      data[name] = new Secret(value);
      fingerprint.update(`${name.length}:${name}${value.length}:`).update(value);
    }
    return defined({ type: document.text("type"), names, data, texts: written, fingerprint: fingerprint.digest("base64url") });
  },
  validate: judgeKeyPairs,
});

/**
 * A certificate and a key that no proxy would take are a fault of the document, so that the last good version of it stays in force. Entries of
 * the generic names are judged only where they look the part: others use these names for other things.
 */
function judgeKeyPairs({ spec }: ConfigObject<KubernetesSecret>, report: Report): void {
  for (const names of PAIRS) {
    const [chain, key, staple] = [textOf(spec, names.chain), textOf(spec, names.key), spec.data[names.staple]?.reveal()];
    if (chain === "" || key === "" || !(names.always || chain.includes(PEM) || key.includes(PEM))) continue;
    const fault = keyPairFault({ chain, key, ...(staple !== undefined && staple.length > 0 && { staple }) });
    if (fault === undefined) continue;
    const name = names[fault.part];
    report("field.invalid", [spec.texts.includes(name) ? "stringData" : "data", name], fault.message);
  }
}

const PAIRS = [
  { chain: "tls.crt", key: "tls.key", staple: "tls.ocsp-staple", always: true },
  { chain: "cert", key: "key", staple: "", always: false },
] as const;
const PEM = "-----BEGIN";

const textOf = ({ data }: KubernetesSecret, name: string): string => Buffer.from(data[name]?.reveal() ?? []).toString("latin1");
