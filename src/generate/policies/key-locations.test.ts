import { describe, expect, it } from "vitest";
import { meshFrom } from "../../../test/support/mesh-from.ts";
import { LISTENER_TYPE } from "../../wire/type-urls.ts";

const POLICY = `
apiVersion: security.istio.io/v1
kind: RequestAuthentication
metadata: {name: tokens, namespace: shop}
spec:
  jwtRules:
  - {issuer: https://mesh.test, jwksUri: "http://login.shop.svc.cluster.local:8000/keys"}
  - {issuer: https://outside.test, jwksUri: "https://login.outside.test/keys", timeout: 3s}
  - {issuer: https://outside.test/again, jwksUri: "https://login.outside.test/keys", timeout: 9s}
  - {issuer: https://discovered.test/}
  - {issuer: https://given.test, jwks: '{"keys":[]}'}
---
apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: {name: login, namespace: shop}
spec:
  hosts: [login.shop.svc.cluster.local]
  resolution: STATIC
  ports: [{number: 8000, name: http, protocol: HTTP}]
  endpoints: [{address: 10.1.0.9}]
`;
const OUTSIDE = { id: "uri https://login.outside.test/keys", uri: "https://login.outside.test/keys", timeoutMs: 9_000 };
const DISCOVERED = {
  id: "issuer https://discovered.test/",
  uri: "https://discovered.test/.well-known/openid-configuration",
  issuer: "https://discovered.test/",
  timeoutMs: 5_000,
};
const INSIDE = {
  id: "uri http://login.shop.svc.cluster.local:8000/keys",
  uri: "http://login.shop.svc.cluster.local:8000/keys",
  timeoutMs: 5_000,
};

describe("places of keys", () => {
  const locations = (fetcher: string) => meshFrom(`settings: {keyFetcher: ${fetcher}}\n---${POLICY}`).world.keyLocations();

  it("are all of them, where the control plane fetches keys", () => expect(locations("istiod")).toEqual([DISCOVERED, INSIDE, OUTSIDE]));
  it("are those outside, where Envoy fetches from services of the mesh", () => expect(locations("hybrid")).toEqual([DISCOVERED, OUTSIDE]));
  it("are those that must be found first, where Envoy always does", () => expect(locations("envoy")).toEqual([DISCOVERED]));

  it("have keys that go into the filter once they are fetched, and leave it again", async () => {
    const web = `
---
apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: {name: web, namespace: shop}
spec:
  hosts: [web.shop.svc.cluster.local]
  resolution: STATIC
  ports: [{number: 80, name: http, protocol: HTTP}]
  endpoints: [{address: 10.1.0.1}]
`;
    const mesh = meshFrom(`proxies: [{name: web, namespace: shop, address: 10.1.0.1}]\n---${POLICY}${web}`);
    const keySet = '{"keys":[{"kty":"oct","kid":"fetched","alg":"HS256","k":"c2hvcC1zZWNyZXQtc2hvcC1zZWNyZXQtc2hvcC0wMQ"}]}';
    const holdsKeys = async (): Promise<boolean> => {
      const [proxy] = mesh.proxies;
      if (proxy === undefined) throw new Error("there is no proxy");
      const listeners = (await mesh.resources(proxy)).get(LISTENER_TYPE);
      return Buffer.from(listeners?.resources.get("virtualInbound")?.body ?? []).includes("fetched");
    };
    expect(await holdsKeys()).toBe(false);
    mesh.world.engine.batch(() => mesh.world.inputs.keySets.set(OUTSIDE.id, keySet));
    expect(await holdsKeys()).toBe(true);
    mesh.world.engine.batch(() => mesh.world.inputs.keySets.delete(OUTSIDE.id));
    expect(await holdsKeys()).toBe(false);
  });
});
