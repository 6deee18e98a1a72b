/** Cipher suites for TLS 1.2 and below that Envoy's BoringSSL can be told to use. */
const CIPHER_SUITES: ReadonlySet<string> = new Set([
  "ECDHE-ECDSA-AES128-GCM-SHA256",
  "ECDHE-RSA-AES128-GCM-SHA256",
  "ECDHE-ECDSA-AES256-GCM-SHA384",
  "ECDHE-RSA-AES256-GCM-SHA384",
  "ECDHE-ECDSA-CHACHA20-POLY1305",
  "ECDHE-RSA-CHACHA20-POLY1305",
  "ECDHE-PSK-CHACHA20-POLY1305",
  "ECDHE-ECDSA-AES128-SHA",
  "ECDHE-RSA-AES128-SHA",
  "ECDHE-PSK-AES128-CBC-SHA",
  "ECDHE-ECDSA-AES256-SHA",
  "ECDHE-RSA-AES256-SHA",
  "ECDHE-PSK-AES256-CBC-SHA",
  "AES128-GCM-SHA256",
  "PSK-AES128-CBC-SHA",
  "AES256-GCM-SHA384",
  "AES128-SHA",
  "AES256-SHA",
  "PSK-AES256-CBC-SHA",
  "DES-CBC3-SHA",
  "ECDHE-RSA-AES128-SHA256",
]);

/** Curves that Envoy's BoringSSL knows. Istio lists more, which it has forgotten or never knew. */
const CURVES: ReadonlySet<string> = new Set(["P-256", "P-384", "P-521", "X25519", "X25519MLKEM768"]);

/** One item of a cipher list: what it does with which suites. */
interface CipherRule {
  readonly does: "" | "-" | "+" | "!";
  readonly suites: readonly string[];
}

/** An item of a cipher list as OpenSSL writes them: a suite, several of equal rank (`[a|b]`), or one that is removed or moved (`-a`, `!a`, `+a`). */
function cipherRule(text: string): CipherRule | undefined {
  const [, does = "", group, name = ""] = /^([-+!]?)(?:\[(.+)\]|(.+))$/.exec(text) ?? [];
  const suites = group?.split("|") ?? (name === "ALL" ? [...CIPHER_SUITES] : [name]);
  return suites.every((suite) => CIPHER_SUITES.has(suite)) ? { does: does as CipherRule["does"], suites } : undefined;
}

/** Whether Envoy understands an item of a cipher list. */
export const isCipherSuite = (text: string): boolean => cipherRule(text) !== undefined;

/** What of a cipher list Envoy understands. Nothing where nothing would be left to choose from: Envoy refuses such a list, whatever else is right. */
export function usableCiphers(list: readonly string[]): readonly string[] {
  const left = new Set<string>();
  const banned = new Set<string>();
  const usable = [...new Set(list)].filter(isCipherSuite);
  for (const { does, suites } of usable.flatMap((item) => cipherRule(item) ?? [])) {
    for (const suite of suites) {
      if (does === "!") banned.add(suite);
      if (does === "-" || does === "!") left.delete(suite);
      else if (does === "" && !banned.has(suite)) left.add(suite);
    }
  }
  return left.size === 0 ? [] : usable;
}

/** Whether Envoy knows a curve. */
export const isCurve = (name: string): boolean => CURVES.has(name);

/** What of a list of curves Envoy knows. */
export const usableCurves = (list: readonly string[]): readonly string[] => [...new Set(list)].filter(isCurve);
