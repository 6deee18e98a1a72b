import { describe, expect, it } from "vitest";
import { meshFrom } from "../../../test/support/mesh-from.ts";
import type { ProxyView } from "../../model/proxy.ts";
import { EXTENSION_CONFIG_TYPE } from "../../wire/type-urls.ts";
import { createNameSets } from "../../xds/name-sets.ts";

const secret = (namespace: string, text: string, type = "kubernetes.io/dockerconfigjson"): string => `
apiVersion: v1
kind: Secret
type: ${type}
metadata: {name: pull, namespace: ${namespace}}
stringData: {".dockerconfigjson": "${text}"}
---`;
const plugin = (namespace: string): string => `
apiVersion: extensions.istio.io/v1alpha1
kind: WasmPlugin
metadata: {name: it, namespace: ${namespace}}
spec: {url: "oci://images.test/it:v1", imagePullSecret: pull}
---`;

/** What the extensions of a proxy hold, as text. */
function offered(documents: string, view: Partial<ProxyView> = {}): string {
  const mesh = meshFrom(`proxies: [{name: web, namespace: shop, address: 10.1.0.1}]\n---${documents}`);
  const [proxy] = mesh.proxies;
  const provider = mesh.world.providers.find(({ typeUrl }) => typeUrl === EXTENSION_CONFIG_TYPE);
  if (proxy === undefined || provider === undefined) throw new Error("there is no proxy, or nobody who offers extensions");
  const wanted = { wildcard: true, names: createNameSets().of([]) };
  const asked = { ...proxy.view, hasIdentity: true, proven: true, ...view };
  const set = provider.offered(asked, wanted);
  expect(provider.offered(asked, wanted)).toBe(set);
  return [...set.resources.values()].map(({ body }) => Buffer.from(body).toString("latin1")).join("\n");
}

describe("a login for a registry", () => {
  it("goes with the module that names it, to a proxy that has proved who it is", () => {
    const text = offered(secret("shop", "LOGIN") + plugin("shop"));
    expect(text).toContain("LOGIN");
    expect(text).not.toContain("kubernetes://");
  });

  it("goes nowhere else", () => {
    const both = secret("shop", "LOGIN") + plugin("shop");
    expect(offered(both, { proven: false })).not.toContain("LOGIN");
    expect(offered(both, { hasIdentity: false })).not.toContain("LOGIN");
    expect(offered(secret("shop", "LOGIN") + plugin("bank"))).not.toContain("LOGIN");
    expect(offered(secret("bank", "LOGIN") + plugin("shop").replace("imagePullSecret: pull", "imagePullSecret: bank/pull"))).not.toContain(
      "LOGIN",
    );
    expect(offered(both.replace("spec: {", "spec: {selector: {matchLabels: {app: other}}, "))).not.toContain("LOGIN");
    expect(offered(secret("shop", "LOGIN", "Opaque") + plugin("shop"))).not.toContain("LOGIN");
    expect(offered(secret("shop", "LOGIN"))).not.toContain("LOGIN");
  });
});
