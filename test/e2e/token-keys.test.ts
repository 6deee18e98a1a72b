import { describe, expect, it } from "vitest";
import { call } from "../support/calls.ts";
import { documentServer } from "../support/document-server.ts";
import { guardedGateway, POLICIES, statusOf } from "../support/policies.ts";
import type { ShopMesh } from "../support/shop-mesh.ts";
import { createIssuer, type Issuer } from "../support/tokens.ts";
import { eventually } from "../support/wait.ts";
import { webProxy } from "../support/web-proxy.ts";

const ENV = { PILOT_JWT_PUB_KEY_REFRESH_INTERVAL: "200ms", ALLOWED_CIDRS_IN_JWKS_URIS: "127.0.0.1/32" };

const authentication = (...rules: readonly string[]): string => `
apiVersion: security.istio.io/v1
kind: RequestAuthentication
metadata: {name: tokens, namespace: shop}
spec: {jwtRules: [${rules.join(", ")}]}
`;

const statusWith = (shop: ShopMesh, issuer: Issuer): Promise<number> =>
  statusOf(shop, { headers: { authorization: `Bearer ${issuer.token({})}` } });

describe("keys that the control plane fetches", () => {
  it("are followed as the issuer changes them, outlive its failures, and are found by discovery", async () => {
    const server = await documentServer();
    const [old, next] = [createIssuer("https://id.test"), createIssuer("https://id.test")];
    const [found, away] = [createIssuer(server.origin), createIssuer("https://away.test")];
    server.documents.set("/keys", old.jwks);
    server.documents.set("/other-keys", found.jwks);
    server.documents.set(
      "/.well-known/openid-configuration",
      JSON.stringify({ issuer: server.origin, jwks_uri: `${server.origin}/other-keys` }),
    );
    const shop = await guardedGateway(
      authentication(
        `{issuer: "${old.name}", jwksUri: "${server.origin}/keys"}`,
        `{issuer: "${found.name}"}`,
        `{issuer: "${away.name}", jwksUri: "${server.origin}/away"}`,
      ),
      {},
      ENV,
    );
    // What was asked for before the first proxy came is there from the start.
    expect(await statusWith(shop, old)).toBe(200);
    expect(await statusWith(shop, next)).toBe(401);
    expect(await statusWith(shop, found)).toBe(200);
    const refused = await call({ ...shop.target, headers: { authorization: `Bearer ${away.token({})}` } });
    expect([refused.status, refused.body]).toEqual([401, "Jwks remote fetch is failed"]);
    expect(await statusOf(shop)).toBe(200);

    server.documents.set("/keys", next.jwks);
    await eventually("tokens of the new key pass", async () => (await statusWith(shop, next)) === 200);
    expect(await statusWith(shop, old)).toBe(401);

    for (const answer of [503, "no keys", JSON.stringify({ keys: [] })]) {
      const asked = server.asked.length;
      server.documents.set("/keys", answer);
      await eventually("it was asked again", () => server.asked.slice(asked).filter((path) => path === "/keys").length > 1);
      expect(await statusWith(shop, next)).toBe(200);
    }
    server.documents.set("/keys", (_, response) => void response.writeHead(302, { location: `${server.origin}/other-keys` }).end());
    server.documents.set("/away", away.jwks);
    await eventually("who was away is believed when he is back", async () => (await statusWith(shop, away)) === 200);
    expect(await statusWith(shop, next)).toBe(200);
    await eventually("it is told", () => shop.istiod.log().includes("the keys fetched last stay in force"));
    expect(await shop.istiod.metric("pilot_jwks_resolver_network_fetch_success_total")).toBeGreaterThan(4);
    expect(await shop.istiod.metric("pilot_jwks_resolver_network_fetch_fail_total")).toBeGreaterThan(3);
    await shop.proxy.assertNothingRejected();
  });

  it("are fetched through the proxy of the environment, whose login nobody is shown", async () => {
    const server = await documentServer();
    const issuer = createIssuer("https://id.test");
    server.documents.set("/keys", issuer.jwks);
    const proxy = await webProxy(server.port);
    const rule = `{issuer: "${issuer.name}", jwksUri: "http://keys.test/keys"}`;
    const shop = await guardedGateway(authentication(rule), {}, { http_proxy: proxy.url });
    expect(await statusWith(shop, issuer)).toBe(200);
    expect(proxy.asked).toContain("GET http://keys.test/keys");
    const shown = await (await shop.istiod.debug("/debug/mesh")).text();
    expect(shown).toContain(`http://${new URL(proxy.url).host}`);
    expect(shown).not.toContain("web:proxy");
  });

  it("are not fetched from this machine unless that is allowed: then tokens are refused", async () => {
    const server = await documentServer();
    const issuer = createIssuer("https://id.test");
    server.documents.set("/keys", issuer.jwks);
    const rules = ["127.0.0.1", "localhost", "[::ffff:127.0.0.1]"].map(
      (host, index) => `{issuer: "${index === 0 ? issuer.name : `https://${index}.test`}", jwksUri: "http://${host}:${server.port}/keys"}`,
    );
    const shop = await guardedGateway(authentication(...rules));
    expect(await statusWith(shop, issuer)).toBe(401);
    expect(await statusOf(shop)).toBe(200);
    expect(server.asked).toEqual([]);
    await eventually("each is told", () => shop.istiod.log().match(/which is not called/g)?.length === 3);
    await shop.istiod.write(POLICIES, authentication(`{issuer: "${issuer.name}", jwks: '${issuer.jwks}'}`));
    await eventually("given keys count", async () => (await statusWith(shop, issuer)) === 200);
  });
});
