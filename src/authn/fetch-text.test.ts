import { createServer } from "node:https";
import type { AddressInfo } from "node:net";
import { describe, expect, it, onTestFinished } from "vitest";
import { createCertificateIssuer } from "../../test/support/certificates.ts";
import { documentServer } from "../../test/support/document-server.ts";
import { createFetchText } from "./fetch-text.ts";

const isBlocked = (): boolean => false;

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
    await expect(plain(at("/silent"), 100)).rejects.toThrow("does not answer in time");
    for (const bad of ["", "keys", "ftp://127.0.0.1/keys"]) await expect(plain(bad)).rejects.toThrow(/is not a/);
    expect(server.asked).toEqual(["/keys", "/moved", "/endless", "/silent"]);
  });
});
