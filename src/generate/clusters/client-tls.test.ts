import { create } from "@bufbuild/protobuf";
import { describe, expect, it } from "vitest";
import { MeshConfigSchema } from "../../gen/istio/mesh/v1alpha1/mesh_config_pb.js";
import { ClientTLSSettingsSchema, ClientTLSSettings_TLSmode as TlsMode } from "../../gen/istio/networking/v1alpha3/destination_rule_pb.js";
import { type ClientTlsQuery, clientTls } from "./client-tls.ts";

const query = (change: Partial<ClientTlsQuery> = {}): ClientTlsQuery => ({
  cluster: { port: 80, subset: "v1", host: "web.shop.svc.cluster.local" },
  settings: undefined,
  mesh: create(MeshConfigSchema, { trustDomain: "prod.test", trustDomainAliases: ["old.test"] }),
  identity: true,
  files: undefined,
  credentials: false,
  credentialSocket: false,
  automatic: true,
  addressless: false,
  http2: false,
  serviceAccounts: () => ["shop/web"],
  subjectAltNames: [],
  external: false,
  ...change,
});

const settings = (mode: TlsMode, fields: object = {}) => create(ClientTLSSettingsSchema, { mode, ...fields });

describe("TLS of a client", () => {
  it("is left to the endpoints where nothing is said, with the servers' accounts in every trusted domain", () => {
    const { security } = clientTls(query());
    expect(security).toMatchObject({
      kind: "auto",
      tls: { certificate: "default", sni: "outbound_.80_.v1_.web.shop.svc.cluster.local", alpn: ["istio"] },
    });
    expect(security.kind === "auto" && security.tls.validation).toEqual({
      roots: "ROOTCA",
      subjectAltNames: [{ exact: "spiffe://old.test/ns/shop/sa/web" }, { exact: "spiffe://prod.test/ns/shop/sa/web" }],
    });
  });

  it("takes identities that a ServiceEntry lists in every trusted domain, and other names as they are", () => {
    const listed = ["spiffe://prod.test/ns/shop/sa/pay", "spiffe://partner.test/ns/shop/sa/pay", "spiffe://prod.test/pay", "pay.test"];
    for (const [kind, change] of [
      ["auto", {}],
      ["tls", { settings: settings(TlsMode.SIMPLE), external: true }],
    ] as const) {
      const { security } = clientTls(query({ serviceAccounts: () => [], subjectAltNames: listed, ...change }));
      expect(security).toMatchObject({ kind });
      const names = security.kind === "plain" ? [] : (security.tls.validation?.subjectAltNames ?? []);
      expect(names.toSorted((a, b) => (JSON.stringify(a) < JSON.stringify(b) ? -1 : 1))).toEqual([
        { exact: "pay.test" },
        { exact: "spiffe://old.test/ns/shop/sa/pay" },
        { exact: "spiffe://partner.test/ns/shop/sa/pay" },
        { exact: "spiffe://prod.test/ns/shop/sa/pay" },
        { exact: "spiffe://prod.test/pay" },
      ]);
    }
  });

  it("is one socket where endpoints are not known one by one", () =>
    expect(clientTls(query({ addressless: true })).security.kind).toBe("tls"));

  const plain: readonly [why: string, change: Partial<ClientTlsQuery>][] = [
    ["the mesh does not do it by itself", { automatic: false }],
    ["the client has no identity", { identity: false }],
    ["a rule switches it off", { settings: settings(TlsMode.DISABLE) }],
    ["a rule demands the mesh's own, and the client has no identity", { identity: false, settings: settings(TlsMode.ISTIO_MUTUAL) }],
  ];
  for (const [why, change] of plain) {
    it(`is none where ${why}`, () =>
      expect(clientTls(query(change))).toEqual({ security: { kind: "plain" }, autoSni: false, autoSanValidation: false }));
  }

  it("speaks HTTP/2 inside the mesh under both names", () => {
    const { security } = clientTls(query({ http2: true, settings: settings(TlsMode.ISTIO_MUTUAL) }));
    expect(security).toMatchObject({ kind: "tls", tls: { alpn: ["istio", "h2"] } });
  });

  it("verifies against the system's roots and by the request's host where a rule names nothing", () => {
    const result = clientTls(query({ settings: settings(TlsMode.SIMPLE) }));
    expect(result).toMatchObject({ autoSni: true, autoSanValidation: true });
    expect(result.security).toMatchObject({ tls: { validation: { roots: "file-root:system", subjectAltNames: [] } } });
    expect(result.security.kind === "tls" && result.security.tls.certificate).toBeUndefined();
  });

  it("uses files, or credentials where those may be used", () => {
    const files = settings(TlsMode.MUTUAL, {
      clientCertificate: "/c",
      privateKey: "/k",
      caCertificates: "/ca",
      credentialName: "pay",
      sni: "pay.test",
    });
    expect(clientTls(query({ settings: files })).security).toMatchObject({
      tls: { certificate: "file-cert:/c~/k", validation: { roots: "file-root:/ca" }, sni: "pay.test" },
    });
    expect(clientTls(query({ settings: files, credentials: true })).security).toMatchObject({
      tls: { certificate: "kubernetes://pay", validation: { roots: "kubernetes://pay-cacert" } },
    });
  });

  it("verifies nobody where a rule says so", () => {
    const { security, autoSanValidation } = clientTls(query({ settings: settings(TlsMode.SIMPLE, { insecureSkipVerify: true }) }));
    expect(security.kind === "tls" && security.tls.validation).toBeUndefined();
    expect(autoSanValidation).toBe(false);
  });

  it("verifies servers whatever the mesh's deprecated default says, as Istio does", () => {
    const mesh = create(MeshConfigSchema, { verifyCertificateAtClient: false });
    const { security, autoSanValidation } = clientTls(query({ mesh, settings: settings(TlsMode.SIMPLE) }));
    expect(security).toMatchObject({ tls: { validation: { roots: "file-root:system" } } });
    expect(autoSanValidation).toBe(true);
  });

  it("names files to the proxy itself where there is no agent", () => {
    const { security } = clientTls(query({ identity: false, settings: settings(TlsMode.SIMPLE) }));
    expect(security).toMatchObject({ kind: "tls", tls: { validation: { roots: "local-root://system" } } });
  });
});
