import { describe, expect, it } from "vitest";
import { type Call, call } from "../support/calls.ts";
import { guardedGateway as gateway, POLICIES, policy, statusOf } from "../support/policies.ts";
import { rule } from "../support/shop.ts";
import { startShop } from "../support/shop-mesh.ts";
import { createIssuer, keyServer } from "../support/tokens.ts";

describe("tokens", () => {
  const [good, other] = [createIssuer("https://good.test"), createIssuer("https://other.test")];
  const bearer = (token: string): Partial<Call> => ({ headers: { authorization: `Bearer ${token}` } });
  const authentication = (...rules: readonly string[]): string => `
apiVersion: security.istio.io/v1
kind: RequestAuthentication
metadata: {name: tokens, namespace: shop}
spec: {jwtRules: [${rules.join(", ")}]}
---`;
  const given = `{issuer: "${good.name}", jwks: '${good.jwks}', audiences: [shop], outputClaimToHeaders: [{header: x-group, claim: group}]}`;

  it("are checked: none passes, a good one passes, every other is refused", async () => {
    const shop = await gateway(authentication(given, `{issuer: "${other.name}", jwks: '${other.jwks}'}`));
    const forged = `${good.token({ aud: "shop" }).split(".").slice(0, 2).join(".")}.${other.token({}).split(".")[2]}`;
    const unsigned = `${Buffer.from('{"alg":"none"}').toString("base64url")}.${good.token({ aud: "shop" }).split(".")[1]}.`;
    const table: readonly [title: string, change: Partial<Call>, status: number][] = [
      ["none", {}, 200],
      ["none, beside a claim of the caller's own", { headers: { "x-group": "buyers" } }, 200],
      [
        "good, beside a claim of the caller's own",
        { headers: { ...bearer(good.token({ aud: "shop" })).headers, "x-group": "buyers" } },
        200,
      ],
      ["good", bearer(good.token({ aud: ["shop"], group: "buyers" })), 200],
      ["good of the other issuer", bearer(other.token({})), 200],
      ["expired", bearer(good.token({ aud: "shop", exp: 1 })), 401],
      ["for somebody else", bearer(good.token({ aud: "bank" })), 403],
      ["of nobody known", bearer(createIssuer("https://nobody.test").token({ aud: "shop" })), 401],
      ["of a namesake", bearer(createIssuer(good.name).token({ aud: "shop" })), 401],
      ["forged", bearer(forged), 401],
      ["unsigned", bearer(unsigned), 401],
      ["garbage", bearer("garbage"), 401],
    ];
    for (const [title, change, status] of table) expect([title, await statusOf(shop, change)]).toEqual([title, status]);
    expect(shop.v1.hits.map(({ headers }) => headers["x-group"])).toEqual([undefined, undefined, undefined, "buyers", undefined]);
    expect(shop.v1.hits.map(({ headers }) => headers.authorization)).toEqual(Array(5).fill(undefined));
    await shop.proxy.assertNothingRejected();
  });

  it("are found where a rule says, and handed on as it says", async () => {
    const placed = `{issuer: "${good.name}", jwks: '${good.jwks}', fromHeaders: [{name: x-token, prefix: "JWT "}], fromParams: [token], fromCookies: [session],
      forwardOriginalToken: true, outputPayloadToHeader: x-payload, outputClaimToHeaders: [{header: x-unit, claim: org.unit}]}`;
    const shop = await gateway(authentication(placed) + policy("known", '{rules: [{from: [{source: {requestPrincipals: ["*"]}}]}]}'));
    const token = good.token({ org: { unit: "till" } });
    const places: readonly [place: string, change: Partial<Call>, status: number][] = [
      ["a header with its prefix", { headers: { "x-token": `JWT ${token}` } }, 200],
      ["that header without the prefix", { headers: { "x-token": token } }, 403],
      ["a parameter", { path: `/?token=${token}` }, 200],
      ["a cookie", { headers: { cookie: `a=b; session=${token}` } }, 200],
      ["a place that is not named", { headers: { authorization: `Bearer ${token}` } }, 403],
      ["a place that is not named, with a claim of the caller's own", { headers: { "x-unit": "till", "x-payload": "e30" } }, 403],
    ];
    for (const [place, change, status] of places) expect([place, await statusOf(shop, change)]).toEqual([place, status]);
    expect(shop.v1.hits.map(({ headers }) => headers["x-unit"])).toEqual(["till", "till", "till"]);
    const payloads = shop.v1.hits.map(
      ({ headers }) => JSON.parse(Buffer.from(String(headers["x-payload"]), "base64url").toString()) as unknown,
    );
    expect(payloads).toEqual(Array(3).fill(expect.objectContaining({ iss: good.name, org: { unit: "till" } })));
    expect(shop.v1.hits.map(({ headers, url }) => `${url} ${headers["x-token"] ?? ""} ${headers.cookie ?? ""}`.includes(token))).toEqual([
      true,
      true,
      true,
    ]);
  });

  it("decide with their claims", async () => {
    const rules = `
  rules:
  - from: [{source: {requestPrincipals: ["${good.name}/*"]}}]
    to: [{operation: {paths: ["/shop/*"]}}]
    when: [{key: "request.auth.claims[groups]", values: [buyers, "team-*"]}, {key: "request.auth.claims[org][unit]", notValues: [guest]}]
  - {from: [{source: {notRequestPrincipals: ["*"]}}], to: [{operation: {paths: [/anonymous]}}]}
  - to: [{operation: {paths: [/public]}}]`;
    const shop = await gateway(authentication(given) + policy("claims", rules));
    const status = (claims: Readonly<Record<string, unknown>>): Promise<number> =>
      statusOf(shop, { path: "/shop/a", ...bearer(good.token({ aud: "shop", ...claims })) });
    expect(await status({ groups: ["sellers", "buyers"] })).toBe(200);
    expect(await status({ groups: "team-red" })).toBe(200);
    expect(await status({ groups: ["sellers"] })).toBe(403);
    expect(await status({ groups: ["buyers"], org: { unit: "guest" } })).toBe(403);
    expect(await status({})).toBe(403);
    expect(await statusOf(shop, { path: "/shop/a" })).toBe(403);
    expect(await statusOf(shop, { path: "/public" })).toBe(200);
    expect(await statusOf(shop, { path: "/anonymous" })).toBe(200);
    expect(await statusOf(shop, { path: "/anonymous", ...bearer(good.token({ aud: "shop" })) })).toBe(403);
  });

  it("choose the route at a gateway", async () => {
    const vip = 'match: [{headers: {"@request.auth.claims[group]": {exact: vip}}}]';
    const shop = await startShop({
      place: "gateway",
      http: rule("v2", vip) + rule("v1"),
      istiod: { files: { [POLICIES]: authentication(given) } },
    });
    const servedBy = async (change: Partial<Call>): Promise<string> => (await call({ ...shop.target, ...change })).by;
    expect(await servedBy(bearer(good.token({ aud: "shop", group: "vip" })))).toBe("v2");
    expect(await servedBy(bearer(good.token({ aud: "shop", group: "other" })))).toBe("v1");
    expect(await servedBy({})).toBe("v1");
  });

  it("whose keys a service of the mesh has are checked with those, if Envoy is to fetch them; whose keys nobody has are refused", async () => {
    const keys = await keyServer(good);
    const uri = "http://keys.shop.svc.cluster.local:8000/keys";
    const service = `
apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: {name: keys, namespace: shop}
spec:
  hosts: [keys.shop.svc.cluster.local]
  location: MESH_INTERNAL
  resolution: STATIC
  ports: [{number: 8000, name: http, protocol: HTTP}]
  endpoints: [{address: 127.0.0.1, ports: {http: ${keys.port}}}]
`;
    const fetched = `{issuer: "${good.name}", jwksUri: "${uri}"}`;
    const unknown = `{issuer: "${other.name}", jwksUri: "https://other.test/keys"}`;
    const shop = await gateway(authentication(fetched, unknown), { "conf/keys.yaml": service }, { PILOT_JWT_ENABLE_REMOTE_JWKS: "hybrid" });
    expect(await statusOf(shop)).toBe(200);
    const refused = await call({ ...shop.target, ...bearer(other.token({})) });
    expect([refused.status, refused.body]).toEqual([401, "Jwks remote fetch is failed"]);
    expect(await statusOf(shop, bearer(good.token({})))).toBe(200);
    expect(await statusOf(shop, bearer(createIssuer(good.name).token({})))).toBe(401);
    expect(shop.v1.hits).toHaveLength(2);
  });
});
