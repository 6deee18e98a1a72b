import { describe, expect, it } from "vitest";
import { readSecretName } from "./secret-request.ts";

const stored = (is: string, [namespace, name]: readonly [string, string], more: object = {}) => ({
  is,
  in: "Secret",
  namespace,
  name,
  grantable: false,
  ...more,
});

describe("readSecretName", () => {
  const table: readonly [name: string, want: object | undefined][] = [
    ["kubernetes://cert", stored("certificate", ["own", "cert"])],
    ["kubernetes://other/cert", stored("certificate", ["other", "cert"])],
    ["kubernetes://cert-cacert", stored("roots", ["own", "cert-cacert"])],
    ["kubernetes-gateway://other/cert", stored("certificate", ["other", "cert"], { grantable: true })],
    ["kubernetes-gateway://other/cert-cacert", stored("roots", ["other", "cert-cacert"], { grantable: true })],
    ["configmap://other/ca", stored("roots", ["other", "ca"], { in: "ConfigMap" })],
    ["local-cert:///etc/cert.pem~/etc/key.pem", { is: "certificateFiles", chainFile: "/etc/cert.pem", keyFile: "/etc/key.pem" }],
    ["local-root:///etc/ca.pem", { is: "rootsFile", file: "/etc/ca.pem" }],
    ["local-root:///etc/ca.pem~/etc/crl.pem", { is: "rootsFile", file: "/etc/ca.pem", revokedFile: "/etc/crl.pem" }],
    ["local-root://system", { is: "rootsFile", file: "system" }],
    ["local-root://", undefined],
    ["local-root://a~", undefined],
    ["local-cert:///etc/cert.pem", undefined],
    ["local-cert://a~b~c", undefined],
    ["kubernetes-gateway://cert", undefined],
    ["configmap://ca", undefined],
    ["kubernetes://a/b/c", undefined],
    ["kubernetes://", undefined],
    ["kubernetes://cert\n", undefined],
    ["kubernetes://Cert", undefined],
    ["invalid://", undefined],
    ["default", undefined],
    ["ROOTCA", undefined],
    ["file-cert:a~b", undefined],
  ];
  for (const [name, want] of table)
    it(`${name} ${want === undefined ? "is no name of ours" : "is understood"}`, () => expect(readSecretName(name, "own")).toEqual(want));
});
