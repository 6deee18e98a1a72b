import { describe, expect, it } from "vitest";
import { manualClock } from "../../test/support/manual-clock.ts";
import { AuthnError } from "../authn/authn-error.ts";
import { readToken } from "../authn/json-web-token.ts";
import { inlineKeys, type KeySource } from "../authn/key-source.ts";
import { keySetText, makeToken, tokenKeys } from "../authn/token-fixture.ts";
import { clusterTokens } from "./cluster-tokens.ts";

const ISSUER = "https://kubernetes.default.svc";
const clusterKeys = tokenKeys("RS256");
const strangerKeys = tokenKeys("RS256");
const UNKNOWN: KeySource = { keys: () => Promise.reject(new Error("the API server does not say")) };

/** An API server that knows which account every token is of, and notes how often it was asked. */
function rig({ keys = inlineKeys(keySetText(clusterKeys)), isThere = false, accepts = true, status = {} } = {}) {
  const clock = manualClock();
  const asked = { times: 0 };
  const client = {
    async request() {
      asked.times += 1;
      const user = { username: "system:serviceaccount:shop:cart" };
      return { status: accepts ? { authenticated: true, audiences: ["istio-ca"], user, ...status } : { authenticated: false } };
    },
  };
  const tokens = clusterTokens({ client, clock, keys, audiences: ["istio-ca"], issuer: () => ISSUER, isThere: () => isThere });
  const now = clock.now() / 1_000;
  const good = { iss: ISSUER, aud: ["istio-ca"], sub: "system:serviceaccount:shop:cart", exp: now + 600, iat: now };
  const bound = { namespace: "shop", pod: { name: "cart-1", uid: "p" }, serviceaccount: { name: "cart", uid: "a" } };
  const show = (text: string, address = "192.0.2.1"): Promise<string> =>
    tokens.verify(readToken(text), { cluster: "", address }).then(
      ({ namespace, serviceAccount, pod }) => `${namespace}/${serviceAccount}${pod === undefined ? "" : ` ${pod.name}`}`,
      (error: unknown) => (error instanceof AuthnError ? error.reason : String(error)),
    );
  return { clock, asked, good, boundClaims: { ...good, "kubernetes.io": bound }, show };
}

describe("a token of the cluster", () => {
  it("that is bound to a pod we see is judged here, every other by the API server, once in ten seconds", async () => {
    const seen = rig({ isThere: true });
    expect([await seen.show(makeToken(clusterKeys, seen.boundClaims)), seen.asked.times]).toEqual(["shop/cart cart-1", 0]);
    for (const claims of [rig().boundClaims, rig().good]) {
      const { clock, asked, show } = rig();
      const token = makeToken(clusterKeys, claims);
      const [one] = await Promise.all([show(token), show(token)]);
      expect(one).toMatch(/^shop\/cart/);
      clock.advance(9_999);
      await show(token);
      expect(asked.times).toBe(1);
      clock.advance(1);
      await show(token);
      expect(asked.times).toBe(2);
    }
  });

  it("that the cluster's keys show to be bad is refused without asking, whatever it names", async () => {
    const { asked, good, boundClaims, show, clock } = rig();
    expect(await show(makeToken(strangerKeys, good))).toBe("token signature");
    expect(await show(makeToken(strangerKeys, boundClaims))).toBe("token signature");
    expect(await show(makeToken(clusterKeys, { ...good, aud: ["elsewhere"] }))).toBe("token audience");
    clock.advance(601_000);
    expect(await show(makeToken(clusterKeys, good))).toBe("token expired");
    expect(asked.times).toBe(0);
  });

  it("that ended with its pod is refused, also while that is remembered", async () => {
    const { asked, boundClaims, show } = rig({ accepts: false });
    const token = makeToken(clusterKeys, boundClaims);
    expect([await show(token), await show(token), asked.times]).toEqual(["token signature", "token signature", 1]);
  });

  it("counts for a service account and our audience alone, as the API server has them", async () => {
    const verdict = async (status: object): Promise<string> => {
      const { good, show } = rig({ status });
      return show(makeToken(clusterKeys, good));
    };
    expect(await verdict({ audiences: ["elsewhere"] })).toBe("token audience");
    expect(await verdict({ audiences: undefined })).toBe("token audience");
    expect(await verdict({ user: { username: "system:node:one" } })).toBe("identity");
    expect(await verdict({ user: undefined })).toBe("identity");
    const { boundClaims, show } = rig({ status: { user: { username: "system:serviceaccount:shop:other" } } });
    expect(await show(makeToken(clusterKeys, boundClaims))).toBe("shop/other"); // Not the pod that the claims name.
  });

  it("of the old kind is always for the API server", async () => {
    const { asked, show } = rig({ isThere: true });
    const old = { iss: "kubernetes/serviceaccount", sub: "system:serviceaccount:shop:cart" };
    expect([await show(makeToken(clusterKeys, old)), asked.times]).toEqual(["shop/cart", 1]);
  });
});

describe("tokens that only the API server can judge", () => {
  const made = (claims: object, number: number): string => makeToken(strangerKeys, { ...claims, jti: String(number) }, { kid: "made-up" });

  it.for(["of a key that is not known", "of the old kind", "while no keys are known"])(
    "%s: so many of an address, and others are judged all the same",
    async (kind) => {
      const { asked, good, show, clock } = rig(kind === "while no keys are known" ? { keys: UNKNOWN } : {});
      const claims = kind === "of the old kind" ? { iss: "kubernetes/serviceaccount" } : good;
      const verdicts = await Promise.all(Array.from({ length: 150 }, (_, number) => show(made(claims, number))));
      expect([asked.times, verdicts.filter((one) => one === "too many tokens").length]).toEqual([100, 50]);
      expect(await show(made(claims, 200), "192.0.2.2")).toBe("shop/cart");
      if (kind !== "while no keys are known") expect(await show(makeToken(clusterKeys, claims))).toBe("shop/cart");
      clock.advance(1_000);
      expect([await show(made(claims, 300)), await show(made(claims, 0))]).toEqual(["shop/cart", "shop/cart"]);
    },
  );

  it("are so many of all addresses together", async () => {
    const { asked, good, show } = rig();
    await Promise.all(Array.from({ length: 1_000 }, (_, number) => show(made(good, number), `192.0.2.${number}`)));
    expect(asked.times).toBe(500);
  });
});
