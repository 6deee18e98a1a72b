import { describe, expect, it } from "vitest";
import type { SignedToken } from "../authn/json-web-token.ts";
import type { TokenVerifier } from "../authn/token-verifier.ts";
import { meshTokens } from "./mesh-tokens.ts";

const ISSUER = "https://kubernetes.default.svc.cluster.local";
const verifier = (serviceAccount: string, issuer = ISSUER): TokenVerifier => ({
  judges: (named) => named === issuer,
  verify: async () => ({ namespace: "shop", serviceAccount }),
});
const remotes = new Map([
  ["west", verifier("western")],
  ["north", verifier("northern", "https://north.example.com")],
]);
const tokens = meshTokens({ own: { cluster: "east", tokens: verifier("eastern") }, remotes: () => remotes });
const token = (iss: string = ISSUER): SignedToken => ({ claims: { iss } }) as unknown as SignedToken;

describe("tokens of several clusters", () => {
  it.for([
    ["", "eastern", "east"],
    ["east", "eastern", "east"],
    ["west", "western", "west"],
  ] as const)("are judged by the cluster that is named: %j", async ([cluster, serviceAccount, by]) => {
    expect(await tokens.verify(token(), { cluster, address: "" })).toEqual({ namespace: "shop", serviceAccount, cluster: by });
  });

  it("are for the mesh to judge where any cluster is their issuer, and refused where the named one is not", async () => {
    expect(["https://north.example.com", ISSUER, "https://example.com"].map(tokens.judges)).toEqual([true, true, false]);
    await expect(tokens.verify(token("https://north.example.com"), { cluster: "west", address: "" })).rejects.toThrow("is not of cluster");
    expect(await tokens.verify(token("https://north.example.com"), { cluster: "north", address: "" })).toMatchObject({ cluster: "north" });
  });

  it("of a cluster that nobody told of are refused", async () => {
    await expect(tokens.verify(token(), { cluster: "south", address: "" })).rejects.toThrow(
      '"south", which this control plane does not know',
    );
  });
});
