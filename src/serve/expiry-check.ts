import { endsSoon } from "../ca/expiry-warnings.ts";
import type { HealthCheck } from "./health.ts";

/** A certificate in force, and what became of the one that was to follow it. */
export interface Expiry {
  /** Why what came later is not in force. */
  readonly fault: string | undefined;
  readonly endsAt: number;
  readonly now: number;
  /** Short lives are meant: only the end itself is worth a word. */
  readonly renewsItself?: boolean;
}

/** Whether a certificate will last, as `/ready?verbose` says it. */
export function expiryCheck(name: string, { fault, endsAt, now, renewsItself = false }: Expiry): HealthCheck {
  const soon = renewsItself ? endsAt <= now : endsSoon(endsAt, now);
  const ends = `valid until ${new Date(endsAt).toISOString()}`;
  return {
    name,
    ok: fault === undefined && !soon,
    blocks: false,
    detail: fault === undefined ? ends : `${fault}; the last good is ${ends}`,
  };
}
