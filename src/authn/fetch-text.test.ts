import { lookup } from "node:dns/promises";
import { createServer } from "node:https";
import type { AddressInfo } from "node:net";
import { hostname } from "node:os";
import { describe, expect, it, onTestFinished } from "vitest";
import { createCertificateIssuer } from "../../test/support/certificates.ts";
import { documentServer } from "../../test/support/document-server.ts";
import { webProxy } from "../../test/support/web-proxy.ts";
import { createFetchText } from "./fetch-text.ts";

const isBlocked = (): boolean => false;

const self = hostname();
const isKnown = await lookup(self).then(
  () => true,
  () => false,
);

describe("a small document", () => {
  it("comes over TLS, verified with the platform's roots and those that are added", async () => {
    const issuer = await createCertificateIssuer("private");
    const { cert, key } = await issuer.issue("DNS:localhost");
    const server = createServer({ cert, key }, (_, response) => response.end("keys"));
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    onTestFinished(() => void server.close());
    const url = `https://localhost:${(server.address() as AddressInfo).port}/`;
    await expect(createFetchText({ isBlocked })(url)).rejects.toThrow(/certificate/);
    expect(await createFetchText({ isBlocked, moreRoots: async () => issuer.cert })(url)).toBe("keys");
    await expect(createFetchText({ moreRoots: async () => issuer.cert })(url)).rejects.toThrow("which is not called");
  });

  it("comes through the proxy of the environment, which sees no more than where it goes", async () => {
    const issuer = await createCertificateIssuer("private");
    const server = createServer(await issuer.issue("DNS:keys.test"), (_, response) => response.end("keys"));
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    onTestFinished(() => void server.close());
    const { url, asked } = await webProxy((server.address() as AddressInfo).port);
    const proxies = { httpProxy: "", httpsProxy: url, noProxy: "exempt.test" };
    const fetchText = createFetchText({ moreRoots: async () => issuer.cert, proxies });
    expect(await fetchText("https://keys.test/secret-path")).toBe("keys");
    await expect(fetchText("https://other.test/")).rejects.toThrow("Hostname/IP does not match");
    await expect(fetchText("https://exempt.test/")).rejects.toThrow(/ENOTFOUND|EAI_AGAIN/);
    await expect(fetchText("https://169.254.169.254/")).rejects.toThrow("which is not called");
    await expect(
      createFetchText({ proxies: { ...proxies, httpsProxy: url.replace("web:", "wrong:") } })("https://keys.test/"),
    ).rejects.toThrow("407");
    expect(asked).toEqual(["CONNECT keys.test:443", "CONNECT other.test:443", "CONNECT keys.test:443"]);
  });

  it.skipIf(!isKnown)(
    "is not asked of a proxy by a name that stands for what is not called (skipped where this machine's name is not known)",
    async () => {
      const { url, asked } = await webProxy(1);
      const fetchText = createFetchText({ isBlocked: () => true, proxies: { httpProxy: "", httpsProxy: url, noProxy: "" } });
      await expect(fetchText(`https://${self}/keys`)).rejects.toThrow("which is not called");
      expect(asked).toEqual([]);
    },
  );

  it("comes in plain text through a proxy too", async () => {
    const server = await documentServer();
    server.documents.set("/keys", "keys");
    const { url, asked } = await webProxy(Number(new URL(server.origin).port));
    const fetchText = createFetchText({ plain: true, proxies: { httpProxy: url, httpsProxy: "", noProxy: "" } });
    expect(await fetchText("http://keys.test/keys")).toBe("keys");
    expect(asked).toEqual(["GET http://keys.test/keys"]);
  });

  it("comes in plain text only where that is allowed, from where it was asked for, in time and not without end", async () => {
    const server = await documentServer();
    server.documents.set("/keys", "keys");
    server.documents.set("/moved", (_, response) => void response.writeHead(302, { location: "/keys" }).end());
    server.documents.set("/endless", (_, response) => void response.write(Buffer.alloc(2 * 1024 * 1024)));
    server.documents.set("/silent", () => {});
    const plain = createFetchText({ plain: true, isBlocked });
    const at = (path: string): string => `${server.origin}${path}`;
    expect(await plain(at("/keys"))).toBe("keys");
    await expect(createFetchText({ isBlocked })(at("/keys"))).rejects.toThrow("not an https URL");
    await expect(createFetchText({ plain: true })(at("/keys"))).rejects.toThrow("which is not called");
    await expect(plain(at("/moved"))).rejects.toThrow("status 302");
    await expect(plain(at("/endless"))).rejects.toThrow("more than");
    await expect(plain(at("/silent"), 2_000)).rejects.toThrow("does not answer in time");
    for (const bad of ["", "keys", "ftp://127.0.0.1/keys"]) await expect(plain(bad)).rejects.toThrow(/is not a/);
    expect(server.asked).toEqual(["/keys", "/moved", "/endless", "/silent"]);
  });
});
