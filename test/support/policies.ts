import { type Call, call } from "./calls.ts";
import { rule } from "./shop.ts";
import { type ShopMesh, startShop } from "./shop-mesh.ts";

/** Below etc/istio: the file with the policies. */
export const POLICIES = "conf/policies.yaml";

/** An AuthorizationPolicy of the shop; `spec` is YAML. */
export const policy = (name: string, spec: string): string => `
apiVersion: security.istio.io/v1
kind: AuthorizationPolicy
metadata: {name: ${name}, namespace: shop}
spec: ${spec}
---`;

/** The shop behind a gateway with policies; further files go below etc/istio. */
export const guardedGateway = (
  policies: string,
  files: Readonly<Record<string, string>> = {},
  env: Readonly<Record<string, string>> = {},
): Promise<ShopMesh> => startShop({ place: "gateway", http: rule("v1"), istiod: { files: { [POLICIES]: policies, ...files }, env } });

/** Status of a request that differs in something from the plain one. */
export const statusOf = async ({ target }: Pick<ShopMesh, "target">, change: Partial<Call> = {}): Promise<number> =>
  (await call({ ...target, ...change })).status;
