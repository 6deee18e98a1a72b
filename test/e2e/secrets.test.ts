import { create, fromBinary, toBinary } from "@bufbuild/protobuf";
import { Metadata } from "@grpc/grpc-js";
import { describe, expect, it } from "vitest";
import { DeltaDiscoveryRequestSchema, DeltaDiscoveryResponseSchema } from "../../src/gen/envoy/service/discovery/v3/discovery_pb.js";
import { openAdsClient } from "../../src/wire/grpc-client.ts";
import { DELTA_SECRETS_METHOD } from "../../src/wire/grpc-server.ts";
import { CLUSTER_TYPE, SECRET_TYPE } from "../../src/wire/type-urls.ts";
import { createCertificateIssuer, secretDocument, tlsSecret } from "../support/certificates.ts";
import { clientCredentials } from "../support/identity.ts";
import type { Istiod } from "../support/istiod.ts";
import { startSecureIstiod, tokenFor } from "../support/secure-proxy.ts";
import { eventually, says } from "../support/wait.ts";

interface Asking {
  readonly type?: string;
  readonly namespace?: string;
  readonly labels?: Readonly<Record<string, string>>;
  /** On the plaintext port, as nobody. */
  readonly plain?: boolean;
  /** Through the service for secrets instead of the aggregated one. */
  readonly direct?: boolean;
  readonly typeUrl?: string;
}

/** What the first answer to a request for these names gives and takes away; a text where the stream was ended instead. */
async function ask(
  istiod: Istiod,
  names: readonly string[],
  asking: Asking = {},
): Promise<{ given: string[]; removed: string[] } | string> {
  const { type = "router", namespace = "shop", labels = {}, plain = false, direct = false, typeUrl = SECRET_TYPE } = asking;
  const metadata = new Metadata();
  if (!plain) metadata.set("authorization", `Bearer ${tokenFor(namespace, "edge")}`);
  const where = plain
    ? { address: `127.0.0.1:${istiod.grpcPort}` }
    : { address: `localhost:${istiod.securePort}`, credentials: await clientCredentials(istiod) };
  return new Promise((resolve) => {
    const client = openAdsClient({
      ...where,
      variant: "delta",
      metadata,
      ...(direct && { method: DELTA_SECRETS_METHOD }),
      message(bytes) {
        const { resources, removedResources } = fromBinary(DeltaDiscoveryResponseSchema, bytes);
        resolve({ given: resources.map(({ name }) => name), removed: removedResources });
        client.close();
      },
      ended: (error) => resolve(error?.message ?? "ended"),
    });
    const node = {
      id: `${type}~127.0.0.8~edge.${namespace}~${namespace}.svc.cluster.local`,
      metadata: { NAMESPACE: namespace, LABELS: { ...labels } },
    };
    client.send(
      toBinary(DeltaDiscoveryRequestSchema, create(DeltaDiscoveryRequestSchema, { node, typeUrl, resourceNamesSubscribe: [...names] })),
    );
  });
}

const given = (...names: readonly string[]) => ({ given: names, removed: [] });
const removed = (...names: readonly string[]) => ({ given: [], removed: names });

describe("secrets", () => {
  it("go to gateways of their namespace that have proved who they are, and to nobody else", async () => {
    const ca = await createCertificateIssuer("servers");
    const pair = await ca.issue("DNS:a.example.com");
    const config = [
      tlsSecret("shop/cert", pair, { "ca.crt": ca.cert }),
      tlsSecret("bank/vault", pair),
      secretDocument("shop/no-key", { "tls.crt": pair.cert }),
      `---
apiVersion: v1
kind: ConfigMap
metadata: {name: roots, namespace: bank}
data: {ca.crt: ${JSON.stringify(ca.cert)}}
---
apiVersion: networking.istio.io/v1
kind: DestinationRule
metadata: {name: out, namespace: shop}
spec: {host: api.example.com, workloadSelector: {matchLabels: {app: client}}, trafficPolicy: {tls: {mode: MUTUAL, credentialName: cert}}}
`,
    ].join("");
    const istiod = await startSecureIstiod({ files: { "conf/all.yaml": config } });
    const [cert, roots] = ["kubernetes://cert", "kubernetes://cert-cacert"];

    expect(await ask(istiod, [cert])).toEqual(given(cert));
    expect(await ask(istiod, [roots])).toEqual(given(roots));
    for (const typeUrl of [SECRET_TYPE, ""]) expect(await ask(istiod, [cert], { direct: true, typeUrl })).toEqual(given(cert));
    expect(await ask(istiod, ["kubernetes-gateway://shop/cert"])).toEqual(given("kubernetes-gateway://shop/cert"));
    expect(await ask(istiod, ["configmap://bank/roots-cacert"])).toEqual(given("configmap://bank/roots-cacert"));

    for (const foreign of [
      "kubernetes://bank/vault",
      "kubernetes-gateway://bank/vault",
      "kubernetes://vault",
      "kubernetes://../bank/vault",
      "default",
    ])
      expect(await ask(istiod, [foreign])).toEqual(removed(foreign));
    expect(await ask(istiod, ["kubernetes://vault"], { namespace: "bank" })).toEqual(given("kubernetes://vault"));
    expect(await ask(istiod, [cert], { namespace: "bank" })).toEqual(removed(cert));

    expect(await ask(istiod, [cert], { plain: true })).toEqual(removed(cert));
    expect(await ask(istiod, [cert], { plain: true, direct: true })).toMatch(/no such method/);
    expect(await ask(istiod, [cert], { direct: true, typeUrl: CLUSTER_TYPE })).toMatch(/sds only is served here/);
    expect(await ask(istiod, [cert], { type: "sidecar" })).toEqual(removed(cert));
    expect(await ask(istiod, [cert], { type: "sidecar", labels: { app: "client" } })).toEqual(given(cert));

    await istiod.write(
      "conf/grant.yaml",
      `{apiVersion: gateway.networking.k8s.io/v1beta1, kind: ReferenceGrant, metadata: {name: g, namespace: bank}, spec: {from: [{group: gateway.networking.k8s.io, kind: Gateway, namespace: shop}], to: [{group: "", kind: Secret, name: vault}]}}`,
    );
    await eventually("the grant is in force", async () => {
      const answer = await ask(istiod, ["kubernetes-gateway://bank/vault"]);
      return typeof answer !== "string" && answer.given.length === 1;
    });
    expect(await ask(istiod, ["kubernetes://bank/vault"])).toEqual(removed("kubernetes://bank/vault"));
    expect(await ask(istiod, ["kubernetes-gateway://bank/vault"], { type: "sidecar" })).toEqual(removed("kubernetes-gateway://bank/vault"));

    expect(await says(istiod, "kubernetes-gateway://bank/vault")).toContain("no ReferenceGrant in bank lets gateways of shop refer to it");
    await says(istiod, "there is no valid Secret shop/vault");
    expect(await istiod.metric("pilot_sds_certificate_errors_total", 'reason="refused"')).toBeGreaterThan(0);
    expect(await istiod.metric("pilot_sds_certificate_errors_total", 'reason="absent"')).toBeGreaterThan(0);
  });
});
