import { join } from "node:path";
import type { Clock } from "../base/clock.ts";
import type { Log } from "../base/log.ts";
import { type Authority, createAuthority, type Signer, SigningError } from "../ca/authority.ts";
import type { CaMaterial } from "../ca/ca-material.ts";
import { warnOfExpiry } from "../ca/expiry-warnings.ts";
import { fileRootStore } from "../ca/file-root-store.ts";
import type { RootStore } from "../ca/root-store.ts";
import type { LoadedMesh } from "../config/mesh/load-mesh.ts";
import type { ClusterRoot } from "./cluster-link.ts";
import { expiryCheck } from "./expiry-check.ts";
import type { HealthCheck } from "./health.ts";
import type { IdentityMetrics } from "./identity-metrics.ts";
import { knownLater } from "./known-later.ts";

export interface OwnCaOptions {
  readonly baseDir: string;
  readonly mesh: LoadedMesh;
  readonly clock: Clock;
  readonly log: Log;
  readonly metrics: IdentityMetrics;
  /** Where a cluster keeps the CA; undefined where it is in files. */
  rootStore?(root: ClusterRoot): RootStore | undefined;
}

/** The CA of this control plane, which may be known only some time after the start. */
export interface OwnCa extends Signer {
  /** Undefined as long as it is not known: then nothing is signed. */
  readonly authority: Authority | undefined;
  /** Calls back when it is known, where it was not at the start; at once where it is meanwhile. */
  whenFound(found: () => void): void;
  /** Calls back when other certificates are in force. */
  follow(changed: () => void): void;
  checks(): readonly HealthCheck[];
  stop(): void;
}

/** Loads the CA, or makes one where there is none at all. Throws `EdgeError` where what is there cannot be used. */
export async function startOwnCa(options: OwnCaOptions): Promise<OwnCa> {
  const { baseDir, mesh, clock, log } = options;
  const root = { directory: join(baseDir, "etc/cacerts"), trustDomain: mesh.mesh.trustDomain, rootTtlMs: mesh.settings.rootCertTtlMs };
  const store = options.rootStore?.(root) ?? fileRootStore({ ...root, clock, log });
  let [told, changed]: [string, () => void] = ["", () => {}];
  const running = await knownLater({
    find: async () => runCa(options, { store, material: await store.load(), changed: () => changed() }),
    patienceMs: store.patienceMs,
    clock,
    failed(reason) {
      if (reason !== told) log.error({ reason }, "the CA cannot be had; it is tried again, and nothing is signed meanwhile");
      told = reason;
    },
  });
  const wasKnown = running.current !== undefined;
  if (!wasKnown)
    log.warn(
      { place: store.place },
      "the CA is not known yet: nothing is signed, and ports that need its certificate stay closed until it is",
    );
  return {
    get authority() {
      return running.current?.authority;
    },
    sign(request) {
      if (running.current !== undefined) return running.current.authority.sign(request);
      return Promise.reject(new SigningError(`the CA is not known yet: ${store.place} could not be read`));
    },
    whenFound(found) {
      if (!wasKnown) running.whenKnown(() => found());
    },
    follow(next) {
      changed = next;
    },
    checks: () => running.current?.checks() ?? [unknownCheck(store.place, running.fault)],
    stop() {
      running.stop();
      running.current?.stop();
    },
  };
}

const unknownCheck = (place: string, fault: string | undefined): HealthCheck => ({
  name: "CA",
  ok: false,
  blocks: false,
  detail: fault ?? `not known yet: ${place} could not be read; nothing is signed, and ports that need its certificate are closed`,
});

interface RunningCa {
  readonly authority: Authority;
  checks(): readonly HealthCheck[];
  stop(): void;
}

interface Found {
  readonly store: RootStore;
  readonly material: CaMaterial;
  changed(): void;
}

/** Signs with what was found, and with what comes in its place. */
function runCa({ mesh, clock, log, metrics }: OwnCaOptions, { store, material, changed }: Found): RunningCa {
  const { workloadCertTtlMs, maxWorkloadCertTtlMs } = mesh.settings;
  const authority = createAuthority({ material, clock, defaultTtlMs: workloadCertTtlMs, maxTtlMs: maxWorkloadCertTtlMs });
  let fault: string | undefined;
  const rootEndsAt = (): number => Math.min(...authority.material.roots.map(({ notAfter }) => notAfter));
  const chainEndsAt = (): number => authority.material.endsAt;
  metrics.observe({ rootEndsAt, chainEndsAt, reloadFailed: () => fault !== undefined, now: () => clock.now() });
  const warnings = warnOfExpiry({
    clock,
    log,
    endings: () => [
      { name: "root certificate", endsAt: rootEndsAt() },
      { name: "CA certificate", endsAt: chainEndsAt() },
    ],
  });
  const stopFollowing = store.follow((news) => {
    fault = "fault" in news ? news.fault : undefined;
    if ("fault" in news) {
      log.error({ place: store.place, reason: news.fault }, "the new certificates of the CA are wrong; the last good ones stay in force");
      return;
    }
    authority.replace(news.material);
    log.info({ place: store.place, ends: new Date(chainEndsAt()).toISOString() }, "new certificates of the CA are in force");
    warnings.look();
    changed();
  });
  return {
    authority,
    checks: () => [expiryCheck("CA", { fault, endsAt: chainEndsAt(), now: clock.now() })],
    stop() {
      stopFollowing();
      warnings.stop();
    },
  };
}
