import { createHmac, randomBytes } from "node:crypto";
import { Secret } from "../../../base/secret.ts";
import { defined } from "../../parse/defined.ts";
import { kubeKind } from "../kube-kind.ts";

/** What a mesh reads of a Kubernetes Secret. Values print as "[redacted]"; whoever needs one reveals it. */
export interface KubernetesSecret {
  readonly type?: string;
  /** Names of the entries, sorted. */
  readonly names: readonly string[];
  readonly data: Readonly<Record<string, Secret>>;
  /** Changes whenever a value does. Keyed with a number of this process alone, so that it tells nobody anything. */
  readonly fingerprint: string;
}

const FINGERPRINT_KEY = randomBytes(32);
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
    const fingerprint = createHmac("sha256", FINGERPRINT_KEY);
    const texts = new Map(Object.entries(document.map("stringData")).map(([name, text]) => [name, Buffer.from(text)]));
    for (const [name, text] of Object.entries(document.map("data"))) {
      if (!BASE64.test(text)) document.wrong(["data", name], "base64");
      else if (!texts.has(name)) texts.set(name, Buffer.from(text, "base64"));
    }
    const names = [...texts.keys()].sort();
    for (const name of names) {
      const value = new Uint8Array(texts.get(name) ?? []);
      data[name] = new Secret(value);
      fingerprint.update(`${name.length}:${name}${value.length}:`).update(value);
    }
    return defined({ type: document.text("type"), names, data, fingerprint: fingerprint.digest("base64url") });
  },
});
