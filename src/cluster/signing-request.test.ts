import { describe, expect, it } from "vitest";
import { SERVER_USES } from "../ca/certificate-api.ts";
import { approvalOf, decisionOf, requestObject } from "./signing-request.ts";

const order = { csr: "the request", signer: "example.com/mesh", uses: SERVER_USES, ttlMs: 0, patienceMs: 1 };
const object = requestObject({ name: "istiod-1", labels: {}, order });
const decided = (status: unknown) => decisionOf({ ...object, status });
const condition = (type: string, more: object = {}) => ({ conditions: [{ type, status: "True", ...more }] });

describe("a CertificateSigningRequest", () => {
  it.for([
    [0, undefined],
    [1_000, 600],
    [86_400_000, 86_400],
    [10 ** 15, 2_147_483_647],
  ] as const)("asks for a life of %d ms as the API takes it", ([ttlMs, seconds]) => {
    const { spec } = requestObject({ name: "x", labels: {}, order: { ...order, ttlMs } }) as { readonly spec?: Record<string, unknown> };
    expect(spec?.expirationSeconds).toBe(seconds);
    expect(Buffer.from(String(spec?.request), "base64").toString()).toBe("the request");
  });

  it("is decided as its status says, a certificate before all else", () => {
    expect(decided(undefined)).toEqual({ is: "pending" });
    expect(decided(condition("Approved"))).toEqual({ is: "approved" });
    expect(decided(condition("Denied", { reason: "No", message: "not you" }))).toEqual({ is: "denied", reason: "No: not you" });
    expect(decided(condition("Failed"))).toEqual({ is: "failed", reason: "" });
    const certificate = Buffer.from("PEM").toString("base64");
    expect(decided({ ...condition("Approved"), certificate })).toEqual({ is: "signed", certificate: "PEM" });
    for (const odd of [null, 3, { conditions: "x" }, { conditions: [null, 1] }]) expect(decided(odd)).toEqual({ is: "pending" });
  });

  it("is approved beside what is said of it already", () => {
    const approved = approvalOf({ ...object, status: { conditions: [{ type: "Other", status: "True" }] } });
    expect(approved.status).toMatchObject({ conditions: [{ type: "Other" }, { type: "Approved", status: "True" }] });
    expect(decisionOf(approved)).toEqual({ is: "approved" });
  });
});
