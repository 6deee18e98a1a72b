import { randomBytes } from "node:crypto";
import type { Clock } from "../base/clock.ts";
import { messageOf } from "../base/errors.ts";
import type { Log } from "../base/log.ts";
import { SigningError } from "../ca/authority.ts";
import { type SigningOrder, SigningRefusal } from "../ca/certificate-api.ts";
import type { KubeClient } from "../kube/kube-client.ts";
import { KubeError } from "../kube/kube-error.ts";
import { Reflector } from "../kube/reflector.ts";
import type { KubeObject, ResourceType } from "../kube/resource-type.ts";
import { approvalOf, type Decision, decisionOf, requestObject } from "./signing-request.ts";

export interface SigningRequestsOptions {
  readonly client: Pick<KubeClient, "listEach" | "watch" | "create" | "get" | "update" | "delete">;
  readonly clock: Clock;
  readonly log: Log;
}

const REQUESTS: ResourceType = { group: "certificates.k8s.io", version: "v1", plural: "certificatesigningrequests", namespaced: false };
/** Marks the requests of one process, which follows them all by one watch. */
const REQUESTER = "istio.io/requested-by";
/** More at a time are refused: who asks comes again. */
const MOST_OPEN = 500;
const APPROVAL_TRIES = 3;
const REMOVAL_MS = 2_000;
const MANIFEST = "deploy/kubernetes-signer.yaml";

interface Open {
  readonly decided: (decision: Decision) => void;
  /** Somebody approved it: from now on it waits for the signer. */
  readonly approved: () => void;
  readonly failed: (error: SigningError) => void;
}

/**
 * Certificates through CertificateSigningRequests: each is made, approved where we may, followed until somebody has decided, and removed whatever became of
 * it. Where we may not approve, somebody else has to; that is said once for each signer.
 */
export class SigningRequests {
  readonly #options: SigningRequestsOptions;
  readonly #id = randomBytes(8).toString("hex");
  readonly #open = new Map<string, Open>();
  readonly #leftToOthers = new Set<string>();
  #following = false;
  #count = 0;

  constructor(options: SigningRequestsOptions) {
    this.#options = options;
  }

  /** The certificate and those above it, in PEM. Rejects with `SigningError`; all end with the signal. */
  async sign(order: SigningOrder, signal: AbortSignal): Promise<string> {
    if (this.#open.size >= MOST_OPEN) throw new SigningError(`${MOST_OPEN} requests wait for an answer; ask again later`);
    this.#follow(signal);
    this.#count += 1;
    const name = `istiod-${this.#id}-${this.#count}`;
    const { promise, resolve, reject } = Promise.withResolvers<Decision>();
    promise.catch(() => undefined); // It may end before anybody waits for it.
    const patience = this.#patience(order, reject);
    this.#open.set(name, { decided: resolve, approved: patience.approved, failed: reject });
    const abort = (): void => reject(new SigningError("istiod ends"));
    signal.addEventListener("abort", abort);
    let made: KubeObject | undefined;
    try {
      made = await this.#create(name, order);
      if (await this.#approve(made, order)) patience.approved();
      const certificate = certificateIn(await promise, order.signer);
      void this.#remove(name);
      return certificate;
    } catch (error) {
      // A process that ends for it is not to leave it behind.
      if (made !== undefined) await this.#remove(name);
      throw error;
    } finally {
      signal.removeEventListener("abort", abort);
      patience.end();
      this.#open.delete(name);
    }
  }

  #patience({ signer, patienceMs, approvalMs = patienceMs }: SigningOrder, give: (up: SigningError) => void) {
    const { clock } = this.#options;
    const unapproved = `nobody approved the request for signer ${signer} within ${secondsOf(approvalMs)}; let istiod do so (${MANIFEST}), or run what does`;
    const unsigned = `signer ${signer} did not sign within ${secondsOf(patienceMs)}; see whether its controller runs`;
    let isApproved = false;
    let cancel = clock.after(approvalMs, () => give(new SigningError(unapproved)));
    return {
      approved() {
        if (isApproved) return;
        isApproved = true;
        cancel();
        cancel = clock.after(patienceMs, () => give(new SigningError(unsigned)));
      },
      end: () => cancel(),
    };
  }

  /** One watch for all requests of this process, from the first one on. */
  #follow(signal: AbortSignal): void {
    if (this.#following) return;
    this.#following = true;
    const { client, clock, log } = this.#options;
    const reflector = new Reflector<Decision>({
      client,
      type: REQUESTS,
      selection: { labelSelector: `${REQUESTER}=${this.#id}` },
      clock,
      log,
      shape: decisionOf,
      changed: ({ upserts, deletes }) => {
        for (const [key, decision] of upserts) this.#note(key.slice(1), decision);
        for (const key of deletes) this.#note(key.slice(1), { is: "gone" });
      },
      noted: () => {
        const { fault } = reflector.state;
        if (fault?.isForbidden !== true) return;
        const refusal = refusedBy(fault, { forbidden: "istiod may not list and watch CertificateSigningRequests", signer: "" });
        for (const open of this.#open.values()) open.failed(refusal);
      },
    });
    void reflector.run(signal);
  }

  #note(name: string, decision: Decision): void {
    const open = this.#open.get(name);
    if (decision.is === "approved") open?.approved();
    else if (decision.is !== "pending") open?.decided(decision);
  }

  async #create(name: string, order: SigningOrder): Promise<KubeObject> {
    try {
      const object = requestObject({ name, labels: { [REQUESTER]: this.#id }, order });
      return await this.#options.client.create(REQUESTS, object, { fieldManager: "istiod" });
    } catch (error) {
      throw refusedBy(error, { forbidden: "istiod may not create CertificateSigningRequests", signer: order.signer });
    }
  }

  /** Whether it is approved now; where we may not, somebody else has to. */
  async #approve(made: KubeObject, order: SigningOrder): Promise<boolean> {
    const { client } = this.#options;
    const { signer } = order;
    let current = made;
    for (let tries = 1; ; tries++) {
      try {
        await client.update(REQUESTS, approvalOf(current), { subresource: "approval", fieldManager: "istiod" });
        return true;
      } catch (error) {
        if (error instanceof KubeError && error.isForbidden) {
          this.#leaveToOthers(made.metadata.name, order, error.message);
          return false;
        }
        if (!(error instanceof KubeError && error.isConflict) || tries === APPROVAL_TRIES)
          throw refusedBy(error, { forbidden: "istiod may not approve requests", signer });
      }
      current = await client.get(REQUESTS, { name: made.metadata.name }).catch((error: unknown) => {
        throw refusedBy(error, { forbidden: "istiod may not read CertificateSigningRequests", signer });
      });
      // Somebody else may have decided meanwhile.
      if (decisionOf(current).is !== "pending") return true;
    }
  }

  /** Said of each request that people may have to approve, and once of many that nobody would by hand. */
  #leaveToOthers(request: string, { signer, approvalMs }: SigningOrder, reason: string): void {
    const isNews = approvalMs !== undefined || !this.#leftToOthers.has(signer);
    this.#leftToOthers.add(signer);
    if (isNews)
      this.#options.log.warn(
        { signer, request, reason },
        `istiod may not approve requests for this signer and waits for somebody who does: kubectl certificate approve ${request}; ${MANIFEST} has the rights`,
      );
  }

  /** Best effort: what stays behind Kubernetes removes within a day. */
  async #remove(name: string): Promise<void> {
    const { client, clock, log } = this.#options;
    const limit = new AbortController();
    const cancel = clock.after(REMOVAL_MS, () => limit.abort());
    try {
      await client.delete(REQUESTS, { name }, { signal: limit.signal });
    } catch (error) {
      if (!(error instanceof KubeError && error.isNotFound))
        log.debug({ request: name, reason: messageOf(error) }, "a CertificateSigningRequest that is done with stays behind");
    } finally {
      cancel();
    }
  }
}

function certificateIn(decision: Decision, signer: string): string {
  switch (decision.is) {
    case "signed":
      return decision.certificate;
    case "denied":
      throw new SigningRefusal(
        `the request for signer ${signer} was denied${because(decision.reason)}; whoever approves requests must let it pass`,
      );
    case "failed":
      throw new SigningRefusal(`signer ${signer} failed${because(decision.reason)}; its own log may say more`);
    default:
      throw new SigningError(`the request for signer ${signer} was removed before it was signed`);
  }
}

const secondsOf = (ms: number): string => `${Math.round(ms / 1_000)} s`;

const because = (reason: string): string => (reason === "" ? "" : `: ${reason}`);

function refusedBy(error: unknown, { forbidden, signer }: { readonly forbidden: string; readonly signer: string }): SigningError {
  if (!(error instanceof KubeError) || error.isTransport)
    return new SigningError(`the API server cannot be asked to have signer ${signer} sign: ${messageOf(error)}`);
  if (error.isForbidden) return new SigningRefusal(`${forbidden}: give it the rights in ${MANIFEST} (${error.message})`);
  const Kind = error.status === 400 || error.status === 422 ? SigningRefusal : SigningError;
  return new Kind(`the API server does not take the request for signer ${signer}: ${error.message}`);
}
