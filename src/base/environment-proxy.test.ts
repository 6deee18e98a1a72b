import { describe, expect, it } from "vitest";
import { proxyFor } from "./environment-proxy.ts";

const through = (url: string, noProxy: string): string | undefined =>
  proxyFor(new URL(url), { httpProxy: "plain.proxy:3128", httpsProxy: "http://secure.proxy:3128", noProxy })?.href;

describe("proxies of the environment", () => {
  it("are chosen by the scheme of what is asked for", () => {
    expect(through("https://keys.test/", "")).toBe("http://secure.proxy:3128/");
    expect(through("http://keys.test/", "")).toBe("http://plain.proxy:3128/");
    expect(proxyFor(new URL("https://keys.test/"), { httpProxy: "plain.proxy", httpsProxy: "", noProxy: "" })).toBeUndefined();
  });

  it("are never asked for what is on this machine", () => {
    for (const url of ["https://localhost/", "https://127.0.0.2/", "https://[::1]:8443/"]) expect(through(url, "")).toBeUndefined();
  });

  const exempt: readonly (readonly [list: string, url: string, want: boolean])[] = [
    ["keys.test", "https://keys.test/", true],
    ["keys.test", "https://a.keys.test/", true],
    ["keys.test", "https://otherkeys.test/", false],
    [".keys.test", "https://a.keys.test/", true],
    [".keys.test", "https://keys.test/", false],
    ["*.keys.test", "https://a.keys.test/", true],
    ["other.test, KEYS.test", "https://keys.test/", true],
    ["*", "https://keys.test/", true],
    ["keys.test:8443", "https://keys.test:8443/", true],
    ["keys.test:8443", "https://keys.test/", false],
    ["keys.test:443", "https://keys.test/", true],
    ["10.0.0.0/8", "https://10.1.2.3/", true],
    ["10.0.0.0/8", "https://11.1.2.3/", false],
    ["10.1.2.3", "https://10.1.2.3/", true],
    ["10.1.2.3:80", "https://10.1.2.3/", false],
    ["fd00::/8", "https://[fd00::1]/", true],
    ["[fd00::1]:443", "https://[fd00::1]/", true],
    ["2.3", "https://10.1.2.3/", false],
    ["", "https://keys.test/", false],
  ];
  for (const [list, url, want] of exempt)
    it(`NO_PROXY ${JSON.stringify(list)} ${want ? "exempts" : "leaves"} ${url}`, () => expect(through(url, list) === undefined).toBe(want));

  it("that cannot be used are no reason to go around them", () => {
    const rules = { httpProxy: "", httpsProxy: "socks5://user:secret@proxy:1080", noProxy: "" };
    expect(() => proxyFor(new URL("https://keys.test/"), rules)).toThrow("HTTPS_PROXY is not the URL of an HTTP proxy");
  });
});
