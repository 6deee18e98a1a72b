import { create, fromBinary, type MessageInitShape, toBinary } from "@bufbuild/protobuf";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { holds } from "../../test/support/holds.ts";
import { IstioCertificateRequestSchema, IstioCertificateResponseSchema } from "../gen/istio/v1/auth/ca_pb.js";
import { answerBytes, readCall } from "./certificate-call.ts";

const bytesOf = (request: MessageInitShape<typeof IstioCertificateRequestSchema>): Uint8Array =>
  toBinary(IstioCertificateRequestSchema, create(IstioCertificateRequestSchema, request));

describe("a call for a certificate", () => {
  it("is read as its descriptor says, with or without metadata", () => {
    const text = fc.string({ unit: "grapheme", maxLength: 200 });
    holds(
      fc.property(text, fc.bigInt(-(2n ** 40n), 2n ** 40n), fc.option(text, { nil: undefined }), (csr, validityDuration, actsFor) => {
        const metadata = actsFor === undefined ? {} : { metadata: { ImpersonatedIdentity: actsFor, other: 1 } };
        const read = readCall(bytesOf({ csr, validityDuration, ...metadata }));
        expect(read).toEqual({ csr, validSeconds: Number(validityDuration), actsFor });
      }),
    );
  });

  it("never acts for others unseen: no order or repetition of fields hides the metadata", () => {
    const plain = bytesOf({ csr: "x", validityDuration: 5n });
    const acting = bytesOf({ metadata: { ImpersonatedIdentity: "spiffe://a" } });
    for (const bytes of [Buffer.concat([plain, acting]), Buffer.concat([acting, plain]), Buffer.concat([acting, plain, plain])])
      expect(readCall(bytes)).toMatchObject({ csr: "x", actsFor: "spiffe://a" });
  });

  it("that is none is told apart from an empty one", () => {
    expect(readCall(new Uint8Array())).toEqual({ csr: "", validSeconds: 0, actsFor: undefined });
    holds(
      fc.property(fc.uint8Array({ maxLength: 100 }), (bytes) => {
        readCall(bytes);
      }),
    );
    expect(readCall(Uint8Array.of(0x0a, 0xff))).toBeUndefined();
  });

  it("is answered as the descriptor says", () => {
    const certChain = ["a\n", "b\n", "roots\n"];
    expect(fromBinary(IstioCertificateResponseSchema, answerBytes(certChain)).certChain).toEqual(certChain);
  });
});
