import { create, fromBinary, toBinary } from "@bufbuild/protobuf";
import { describe, expect, it } from "vitest";
import type { Caller } from "../authn/authenticator.ts";
import { AuthnError } from "../authn/authn-error.ts";
import { systemClock } from "../base/clock.ts";
import { EdgeError } from "../base/errors.ts";
import { silentLog } from "../base/log.ts";
import { IstioCertificateRequestSchema, IstioCertificateResponseSchema } from "../gen/istio/v1/auth/ca_pb.js";
import { buildCsr } from "../pki/csr.ts";
import { generateKeys } from "../pki/keys.ts";
import { formatSpiffeId, type WorkloadIdentity } from "../pki/spiffe.ts";
import type { Peer } from "../wire/discovery-stream.ts";
import { GRPC_STATUS } from "../wire/grpc-status.ts";
import { SigningError, type SignRequest } from "./authority.ts";
import type { CaMetrics } from "./ca-metrics.ts";
import { certificateService } from "./certificate-service.ts";

const CART: WorkloadIdentity = { trustDomain: "cluster.local", namespace: "shop", serviceAccount: "cart" };
const TELLER: WorkloadIdentity = { trustDomain: "cluster.local", namespace: "bank", serviceAccount: "teller" };
const STRANGER: WorkloadIdentity = { ...TELLER, trustDomain: "other.example" };
const PEER: Peer = { address: "10.0.0.1:1", header: () => undefined, certificate: undefined };

interface RigOptions {
  readonly caller?: Caller | AuthnError;
  readonly isTrusted?: boolean;
  readonly fails?: boolean;
}

/** A service whose signer notes what it is asked. */
function rig({ caller = { identity: CART, by: "token" }, isTrusted = false, fails = false }: RigOptions) {
  const signed: SignRequest[] = [];
  const counted: string[] = [];
  const count = (name: keyof CaMetrics) => (): void => void counted.push(name);
  const serve = certificateService({
    async authenticate() {
      if (caller instanceof AuthnError) throw caller;
      return caller;
    },
    actingFault: () => (isTrusted ? undefined : "not trusted"),
    signer: {
      async sign(request) {
        if (fails) throw new SigningError("the CA ended");
        signed.push(request);
        return { certificate: formatSpiffeId(request.identity), intermediates: ["middle"], roots: "roots", notAfter: systemClock.now() };
      },
    },
    clock: systemClock,
    log: silentLog,
    metrics: {
      request: count("request"),
      unauthenticated: count("unauthenticated"),
      noIdentity: count("noIdentity"),
      malformed: count("malformed"),
      signFailed: count("signFailed"),
      issued: count("issued"),
    },
  });
  const ask = async (fields: { readonly csr?: string; readonly actsFor?: string } = {}): Promise<readonly string[]> => {
    const csr = fields.csr ?? buildCsr(await generateKeys("P-256"), formatSpiffeId(TELLER));
    const metadata = fields.actsFor === undefined ? {} : { metadata: { ImpersonatedIdentity: fields.actsFor } };
    const request = create(IstioCertificateRequestSchema, { csr, validityDuration: 60n, ...metadata });
    const answer = await serve(toBinary(IstioCertificateRequestSchema, request), PEER);
    return fromBinary(IstioCertificateResponseSchema, answer).certChain;
  };
  return { ask, signed, counted };
}

/** A token for one certificate, which notes what becomes of its use. */
function singleUse() {
  const events: string[] = [];
  let isSpent = false;
  const once = {
    async take() {
      if (isSpent) throw new AuthnError("token used", "used before");
      isSpent = true;
      events.push("taken");
    },
    async giveBack() {
      isSpent = false;
      events.push("given back");
    },
  };
  return { events, caller: { identity: CART, by: "token", once } as const };
}

describe("CreateCertificate", () => {
  it("signs for whom the caller has proved to be, whatever the request names", async () => {
    const { ask, signed, counted } = rig({});
    expect(await ask()).toEqual([formatSpiffeId(CART), "middle", "roots"]);
    expect(signed).toMatchObject([{ identity: CART, ttlMs: 60_000 }]);
    expect(counted).toEqual(["request", "issued"]);
  });

  it.for([
    ["unauthenticated", new AuthnError("token expired", "too old")],
    ["noIdentity", new AuthnError("identity", "no workload")],
  ] as const)("refuses who does not prove it, and counts why (%s)", async ([name, caller]) => {
    const { ask, signed, counted } = rig({ caller });
    await expect(ask()).rejects.toMatchObject({ status: GRPC_STATUS.UNAUTHENTICATED, message: caller.message });
    expect([signed, counted]).toEqual([[], ["request", name]]);
  });

  it("refuses a request that cannot be read", async () => {
    const { ask, signed, counted } = rig({});
    await expect(ask({ csr: "no request" })).rejects.toMatchObject({ status: GRPC_STATUS.INVALID_ARGUMENT });
    expect([signed, counted]).toEqual([[], ["request", "malformed"]]);
  });
});

describe("a token for one certificate", () => {
  it("gets one, and never a second", async () => {
    const { caller, events } = singleUse();
    const { ask, signed } = rig({ caller });
    await ask();
    await expect(ask()).rejects.toMatchObject({ status: GRPC_STATUS.UNAUTHENTICATED });
    expect(signed).toHaveLength(1);
    expect(events).toEqual(["taken"]);
  });

  it("is not used up by a CA that cannot sign, nor by a request that is wrong", async () => {
    const { caller, events } = singleUse();
    await expect(rig({ caller, fails: true }).ask()).rejects.toMatchObject({ status: GRPC_STATUS.UNAVAILABLE, message: "the CA ended" });
    expect(events).toEqual(["taken", "given back"]);
    await expect(rig({ caller }).ask({ csr: "no request" })).rejects.toMatchObject({ status: GRPC_STATUS.INVALID_ARGUMENT });
    expect(events).toHaveLength(2);
    await rig({ caller }).ask();
  });
});

describe("a control plane that cannot keep the use of a token", () => {
  it("signs nothing, says that it is its own fault, and counts that", async () => {
    const take = (): Promise<void> => Promise.reject(new EdgeError("state_unwritable", "no room for it", { cause: "ENOSPC" }));
    const once = { take, giveBack: () => Promise.reject(new Error("it was not taken")) };
    const { ask, signed, counted } = rig({ caller: { identity: CART, by: "token", once } });
    await expect(ask()).rejects.toMatchObject({ status: GRPC_STATUS.UNAVAILABLE, message: "no room for it" });
    expect([signed, counted]).toEqual([[], ["request", "signFailed"]]);
  });
});

describe("a certificate for somebody else", () => {
  it("is given to whom configuration trusts with it, within its trust domain", async () => {
    expect((await rig({ isTrusted: true }).ask({ actsFor: formatSpiffeId(TELLER) }))[0]).toBe(formatSpiffeId(TELLER));
  });

  const refused: readonly [what: string, options: RigOptions, actsFor: string][] = [
    ["to anybody else", {}, formatSpiffeId(TELLER)],
    ["for another trust domain", { isTrusted: true }, formatSpiffeId(STRANGER)],
    ["for what is no identity", { isTrusted: true }, "teller"],
    ["for a token that is good for one certificate", { isTrusted: true, caller: singleUse().caller }, formatSpiffeId(TELLER)],
  ];
  for (const [what, options, actsFor] of refused) {
    it(`is not given ${what}`, async () => {
      const { ask, signed, counted } = rig(options);
      await expect(ask({ actsFor })).rejects.toMatchObject({ status: GRPC_STATUS.PERMISSION_DENIED });
      expect([signed, counted]).toEqual([[], ["request", "unauthenticated"]]);
    });
  }
});
