import { create, fromBinary } from "@bufbuild/protobuf";
import { describe, expect, it } from "vitest";
import { createCertificateIssuer, secretDocument, tlsSecret } from "../../../test/support/certificates.ts";
import { readDocuments } from "../../config/documents/read-documents.ts";
import { defineInputs } from "../../config/inputs.ts";
import { objectKey } from "../../config/object.ts";
import { readObject } from "../../config/read-object.ts";
import { storedCredentials } from "../../credentials/stored-credentials.ts";
import { createEngine } from "../../engine/index.ts";
import { NodeSchema } from "../../gen/envoy/config/core/v3/base_pb.js";
import { SecretSchema } from "../../gen/envoy/extensions/transport_sockets/tls/v3/secret_pb.js";
import type { ProxyView } from "../../model/proxy.ts";
import { createNameSets } from "../../xds/name-sets.ts";
import { readNode } from "../proxy-view.ts";
import type { MayReadSecrets } from "./secret-access.ts";
import { createSecretProvider, type WithheldSecret } from "./secret-provider.ts";

const CERT = "kubernetes://cert";
const names = createNameSets();

function rig(text: string, mayRead?: MayReadSecrets) {
  const engine = createEngine({ recheck: true });
  const inputs = defineInputs(engine);
  const put = (documents: string): void =>
    void engine.batch(() => {
      for (const raw of readDocuments(documents, { source: "test", file: "f.yaml", scope: "f.yaml" })) {
        const { object } = readObject(raw);
        if (object !== undefined) inputs.objects.set(objectKey(object), object);
      }
    });
  put(text);
  const withheld: WithheldSecret[] = [];
  const provider = createSecretProvider(
    { engine, inputs },
    {
      credentials: storedCredentials(inputs.objects),
      withheld: (secret) => void withheld.push(secret),
      ...(mayRead !== undefined && { mayRead }),
    },
  );
  const offered = (view: ProxyView, ...asked: readonly string[]) => provider.offered(view, { wildcard: false, names: names.of(asked) });
  return { put, provider, offered, withheld };
}

function view(type: string, { name = "edge", labels = {}, proven = true } = {}): ProxyView {
  const facts = readNode(create(NodeSchema, { id: `${type}~10.0.0.1~${name}.shop~shop.svc.cluster.local`, metadata: { LABELS: labels } }));
  if ("refused" in facts) throw new Error(facts.refused);
  return { ...facts.view, sidecar: undefined, remoteCluster: "", pod: "", claim: "", proven };
}

const rule = (spec: string): string =>
  `\n---\n{apiVersion: networking.istio.io/v1, kind: DestinationRule, metadata: {name: out, namespace: shop}, spec: {host: api.example.com, ${spec}}}\n`;

describe("secrets", () => {
  it("are made once and shared by proxies that ask for the same, until the credential changes", async () => {
    const ca = await createCertificateIssuer("ca");
    const { put, offered } = rig(tlsSecret("shop/cert", await ca.issue("DNS:a")));
    const first = offered(view("router"), CERT);
    expect(offered(view("router"), CERT)).toBe(first);
    expect(offered(view("router", { name: "other" }), CERT)).toBe(first);
    put(tlsSecret("shop/unrelated", await ca.issue("DNS:b")));
    expect(offered(view("router"), CERT)).toBe(first);

    const next = await ca.issue("DNS:a");
    put(tlsSecret("shop/cert", next));
    const second = offered(view("router"), CERT);
    expect(second.resources.get(CERT)?.version).not.toBe(first.resources.get(CERT)?.version);
    const { name, type } = fromBinary(SecretSchema, second.resources.get(CERT)?.body ?? new Uint8Array());
    expect(name).toBe(CERT);
    expect(type.case === "tlsCertificate" && Buffer.from(type.value.privateKey?.specifier.value as Uint8Array).toString()).toBe(next.key);
  });

  it("that cannot be used are failures, that are not there are left out, and both are told with the reason", async () => {
    const ca = await createCertificateIssuer("ca");
    const { offered, withheld, provider } = rig(secretDocument("shop/cert", { "tls.crt": (await ca.issue("DNS:a")).cert }));
    const { resources, failed } = offered(view("router"), CERT, "kubernetes://nothing");
    expect([...resources.keys()]).toEqual([]);
    expect(failed.map(({ name }) => name)).toEqual([CERT]);
    expect(withheld.map(({ name, why }) => [name, why])).toEqual([
      [CERT, "broken"],
      ["kubernetes://nothing", "absent"],
    ]);
    expect(provider.provenance(view("router"), CERT)).toEqual(["Secret/shop/cert"]);
  });

  it("go to sidecars that a rule of the namespace selects, of every policy in it", async () => {
    const ca = await createCertificateIssuer("ca");
    const text = tlsSecret("shop/cert", await ca.issue("DNS:a"), { "ca.crt": ca.cert });
    const given = (spec: string, labels = { app: "client" }): boolean =>
      rig(text + rule(spec))
        .offered(view("sidecar", { labels }), CERT)
        .resources.has(CERT);
    const selector = "workloadSelector: {matchLabels: {app: client}}";
    const tls = "tls: {mode: MUTUAL, credentialName: cert}";
    expect(given(`${selector}, trafficPolicy: {${tls}}`)).toBe(true);
    expect(given(`${selector}, trafficPolicy: {portLevelSettings: [{port: {number: 443}, ${tls}}]}`)).toBe(true);
    expect(given(`${selector}, subsets: [{name: v1, trafficPolicy: {${tls}}}]`)).toBe(true);
    expect(given(`${selector}, trafficPolicy: {${tls}}`, { app: "another" })).toBe(false);
    expect(given(`trafficPolicy: {${tls}}`)).toBe(false);
    expect(given(`${selector}, trafficPolicy: {tls: {mode: MUTUAL, credentialName: other}}`)).toBe(false);
    expect(rig(text).offered(view("sidecar"), `${CERT}-cacert`).resources.size).toBe(1);
  });

  it("are asked for anew at every push: who may read them may change", async () => {
    const ca = await createCertificateIssuer("ca");
    let allowed = true;
    const { offered, withheld } = rig(tlsSecret("shop/cert", await ca.issue("DNS:a")), () => allowed);
    expect(offered(view("router"), CERT).resources.size).toBe(1);
    allowed = false;
    expect(offered(view("router"), CERT).resources.size).toBe(0);
    expect(withheld.at(-1)?.reason).toBe("service account shop/ may not read secrets of its namespace");
    allowed = true;
    expect(offered(view("router", { proven: false }), CERT).resources.size).toBe(0);
    expect(withheld.at(-1)?.reason).toMatch(/not proved who it is/);
  });

  it("are neither given nor taken away while it is not known who may read them", async () => {
    const { offered } = rig(tlsSecret("shop/cert", await (await createCertificateIssuer("ca")).issue("DNS:a")), () => undefined);
    const { resources, failed } = offered(view("router"), CERT);
    expect([resources.size, failed.map(({ name }) => name)]).toEqual([0, [CERT]]);
  });

  it("of another namespace go to gateways under a grant for their namespace, kind and name, and else to nobody", async () => {
    const ca = await createCertificateIssuer("ca");
    const pair = await ca.issue("DNS:a");
    const text = tlsSecret("bank/cert", pair, { "ca.crt": ca.cert }) + tlsSecret("bank/other", pair);
    const given = (grants: string, type = "router"): readonly string[] => {
      const asked = [
        "kubernetes-gateway://bank/cert",
        "kubernetes-gateway://bank/other",
        "kubernetes://bank/cert",
        "kubernetes://bank/cert-cacert",
      ];
      return [
        ...rig(text + grants)
          .offered(view(type), ...asked)
          .resources.keys(),
      ];
    };
    const grant = (from: string, to = "{group: '', kind: Secret, name: cert}", namespace = "bank"): string =>
      `\n---\n{apiVersion: gateway.networking.k8s.io/v1beta1, kind: ReferenceGrant, metadata: {name: g, namespace: ${namespace}}, spec: {from: [${from}], to: [${to}]}}\n`;
    const shop = "{group: gateway.networking.k8s.io, kind: Gateway, namespace: shop}";
    expect(given("")).toEqual([]);
    expect(given(grant(shop))).toEqual(["kubernetes-gateway://bank/cert"]);
    expect(given(grant(shop, "{group: '', kind: Secret}"))).toEqual(["kubernetes-gateway://bank/cert", "kubernetes-gateway://bank/other"]);
    expect(given(grant(shop), "sidecar")).toEqual([]);
    for (const other of [
      grant(shop.replace("shop", "mall")),
      grant(shop.replace("kind: Gateway", "kind: HTTPRoute")),
      grant(shop.replace("gateway.networking.k8s.io", "example.com")),
      grant(shop, "{group: '', kind: Service, name: cert}"),
      grant(shop, undefined, "mall"),
    ])
      expect(given(other)).toEqual([]);
  });

  it("in files of the proxy's machine are its own business: it is given the paths, whoever it is", () => {
    const { offered } = rig("");
    const asked = ["local-cert:///etc/a.pem~/etc/a.key", "local-root:///etc/ca.pem"];
    const set = offered(view("sidecar", { proven: false }), ...asked);
    expect([...set.resources.keys()]).toEqual(asked);
    expect(offered(view("sidecar", { proven: false }), ...asked)).toBe(set);
  });
});
