import { create } from "@bufbuild/protobuf";
import fc from "fast-check";
import { expect, it } from "vitest";
import { NodeSchema } from "../../src/gen/envoy/config/core/v3/base_pb.js";
import type { ProxyView } from "../../src/model/proxy.ts";
import { SECRET_TYPE } from "../../src/wire/type-urls.ts";
import { createNameSets } from "../../src/xds/name-sets.ts";
import { createCertificateIssuer, type Issued, secretDocument, tlsSecret } from "../support/certificates.ts";
import { holds } from "../support/holds.ts";
import { meshOf, type TestMesh } from "../support/mesh-from.ts";

const NAMES = ["cert", "cert-cacert", "other"];
const labels = { app: "web" };

const document = (object: object): string => `\n---\n${JSON.stringify(object)}\n`;

/** What a tenant may write: rules that name credentials of anybody, and grants to others (never to tenant `a`: that one would be no leak). */
const documents = (namespace: string): fc.Arbitrary<string> => {
  const named = fc.constantFrom("cert", "other", "b/cert", "kubernetes://b/cert", "kubernetes-gateway://b/cert");
  const rule = fc.tuple(fc.nat(3), named, fc.boolean()).map(([index, credentialName, selects]) =>
    document({
      apiVersion: "networking.istio.io/v1",
      kind: "DestinationRule",
      metadata: { name: `r${index}`, namespace },
      spec: {
        host: `h${index}.test`,
        ...(selects && { workloadSelector: { matchLabels: labels } }),
        trafficPolicy: { tls: { mode: "MUTUAL", credentialName } },
      },
    }),
  );
  const grant = fc
    .tuple(fc.constantFrom("a", "b", "c"), fc.constantFrom("a", "c"), fc.option(fc.constantFrom(...NAMES), { nil: undefined }))
    .map(([owner, from, name]) => {
      const to = owner === "b" && from === "a" ? "c" : from;
      return document({
        apiVersion: "gateway.networking.k8s.io/v1beta1",
        kind: "ReferenceGrant",
        metadata: { name: `g-${owner}-${to}`, namespace: namespace === "a" ? "a" : owner },
        spec: {
          from: [{ group: "gateway.networking.k8s.io", kind: "Gateway", namespace: to }],
          to: [{ group: "", kind: "Secret", ...(name !== undefined && { name }) }],
        },
      });
    });
  return fc.array(fc.oneof(rule, grant), { maxLength: 6 }).map((texts) => texts.join(""));
};

const askedName = fc.oneof(
  fc
    .tuple(fc.constantFrom("kubernetes://", "kubernetes-gateway://"), fc.constantFrom("", "a/", "b/"), fc.constantFrom(...NAMES))
    .map((parts) => parts.join("")),
  fc
    .tuple(
      fc.constantFrom("kubernetes://", "kubernetes-gateway://", "configmap://", "kubernetes:///", ""),
      fc.constantFrom("", "a/", "b/", "../b/", "a/../b/", "b//", "B/", "b%2F"),
      fc.constantFrom(...NAMES, "*", "cert-cacert-cacert"),
    )
    .map((parts) => parts.join("")),
  fc.string({ maxLength: 30 }),
);

const proxies: fc.Arbitrary<Pick<ProxyView, "type" | "labels" | "proven">> = fc.record({
  type: fc.constantFrom("sidecar", "router", "waypoint"),
  labels: fc.constantFrom({}, labels),
  proven: fc.boolean(),
});

const names = createNameSets();

const node = create(NodeSchema, { id: "sidecar~10.1.9.9~x.a~a.svc.cluster.local", metadata: { NAMESPACE: "a" } });

/** Everything a proxy of tenant `a` is given for these names, as text, with the versions. */
function givenTo(
  mesh: TestMesh,
  who: Partial<ProxyView>,
  asked: readonly string[],
): { readonly text: string; readonly versions: readonly string[] } {
  const provider = mesh.world.providers.find(({ typeUrl }) => typeUrl === SECRET_TYPE);
  const [proxy] = mesh.proxies;
  if (provider === undefined || proxy === undefined) throw new Error("there is no provider or no proxy");
  const { resources } = provider.offered({ ...proxy.view, ...who }, { wildcard: false, names: names.of([...asked]) });
  const list = [...resources.values()];
  return {
    text: list.map(({ body }) => Buffer.from(body).toString("latin1")).join("\n"),
    versions: list.map(({ name, version }) => `${name} ${version}`),
  };
}

const secretsOf = (namespace: string, ca: string, pair: Issued): string =>
  tlsSecret(`${namespace}/cert`, pair, { "ca.crt": ca }) +
  secretDocument(`${namespace}/cert-cacert`, { cacert: ca }) +
  tlsSecret(`${namespace}/other`, pair);

it("a tenant is given no secret of another, whatever it asks for and whatever both write", async () => {
  const [a, b] = [await createCertificateIssuer("a"), await createCertificateIssuer("b")];
  const [own, foreign, renewed] = [await a.issue("DNS:a"), await b.issue("DNS:b"), await b.issue("DNS:b")];
  const traces = [foreign.key, foreign.cert, renewed.key, renewed.cert, b.cert].map((pem) => pem.split("\n")[2] ?? "");
  const asked = fc.array(askedName, { minLength: 1, maxLength: 12 });
  let shown = 0;
  holds(
    fc.property(fc.tuple(documents("a"), documents("b"), proxies, asked), ([ours, theirs, who, wanted]) => {
      const mesh = meshOf({
        documents: [secretsOf("a", a.cert, own), secretsOf("b", b.cert, foreign), ours, theirs],
        nodes: [{ name: "x", node }],
      });
      const before = givenTo(mesh, who, wanted);
      for (const trace of traces) expect(before.text).not.toContain(trace);
      if (!who.proven) expect(before.versions).toEqual([]);
      mesh.change({ put: secretsOf("b", b.cert, renewed) });
      expect(givenTo(mesh, who, wanted).versions).toEqual(before.versions);
      shown += before.versions.length;
    }),
    { numRuns: 300 },
  );
  expect(shown).toBeGreaterThan(0);
});
