import { createServer } from "node:https";
import type { AddressInfo } from "node:net";
import { describe, expect, it, onTestFinished } from "vitest";
import { createCertificateIssuer } from "../../../test/support/certificates.ts";
import { documentServer } from "../../../test/support/document-server.ts";
import { NO_PROXIES } from "../../base/environment-proxy.ts";
import { type FetchLimits, httpGet } from "./http-get.ts";

const limits = (): FetchLimits => ({
  signal: AbortSignal.timeout(10_000),
  mostBytes: 1_000,
  insecureHosts: new Set(["*"]),
  blockedRanges: [],
  proxies: NO_PROXIES,
});
const LOGIN = { authorization: "Basic c2VjcmV0", accept: "*/*" };

describe("redirects", () => {
  it("are followed, but a login goes to no other host", async () => {
    const [first, second] = [await documentServer(), await documentServer()];
    const shown: (string | undefined)[] = [];
    for (const { documents } of [first, second])
      documents.set("/it", ({ headers }, response) => {
        shown.push(headers.authorization);
        response.end("it");
      });
    first.documents.set("/near", (_, response) => void response.writeHead(307, { location: "/it" }).end());
    first.documents.set("/far", (_, response) => void response.writeHead(307, { location: `${second.origin}/it` }).end());
    for (const path of ["/near", "/far"])
      expect((await httpGet(new URL(`${first.origin}${path}`), LOGIN, limits())).body.toString()).toBe("it");
    expect(shown).toEqual([LOGIN.authorization, undefined]);
  });

  it("that go round are ended", async () => {
    const server = await documentServer();
    server.documents.set("/round", (_, response) => void response.writeHead(302, { location: "/round" }).end());
    await expect(httpGet(new URL(`${server.origin}/round`), {}, limits())).rejects.toThrow("redirects more than 5 times");
    expect(server.asked).toHaveLength(6);
  });

  it("lead from https to nothing that is less", async () => {
    const plain = await documentServer();
    plain.documents.set("/it", "it");
    const certificate = await (await createCertificateIssuer("registry")).issue("DNS:localhost");
    const server = createServer(certificate, ({ url = "" }, response) => {
      response.writeHead(302, { location: url === "/plain" ? `${plain.origin}/it` : "file:///etc/passwd" }).end();
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    onTestFinished(() => void server.close());
    const origin = `https://localhost:${(server.address() as AddressInfo).port}`;
    for (const path of ["/plain", "/file"])
      await expect(httpGet(new URL(`${origin}${path}`), {}, limits())).rejects.toThrow("redirects to where nothing is fetched from");
    expect(plain.asked).toEqual([]);
  });
});
