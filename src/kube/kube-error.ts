/** Why a request to an API server failed before it gave an answer; such faults pass, and what was read before stays true as far as anybody knows. */
export type TransportReason = "Unreachable" | "TimedOut" | "Silent" | "Unreadable";

export interface KubeFault {
  /** HTTP status; 0 where there was no answer. */
  readonly status: number;
  /** As the API server names it (`NotFound`, `Expired`, `Forbidden` …), or a `TransportReason`. */
  readonly reason: string;
  readonly message: string;
  /** How long the server asks to be left alone, in ms. */
  readonly retryAfterMs?: number;
  readonly cause?: unknown;
}

/** What an API server, or the way to it, has refused. */
export class KubeError extends Error {
  override readonly name = "KubeError";
  readonly status: number;
  readonly reason: string;
  readonly retryAfterMs: number | undefined;

  constructor({ status, reason, message, retryAfterMs, cause }: KubeFault) {
    super(message, { cause });
    this.status = status;
    this.reason = reason;
    this.retryAfterMs = retryAfterMs;
  }

  /** The versions that were asked for are no longer kept: everything has to be listed again. */
  get isGone(): boolean {
    return this.status === 410 || this.reason === "Expired" || this.reason === "Gone";
  }

  get isNotFound(): boolean {
    return this.status === 404;
  }

  get isConflict(): boolean {
    return this.status === 409;
  }

  /** The server knows us and says no. */
  get isForbidden(): boolean {
    return this.status === 403;
  }

  /** The server does not know us, or no longer. */
  get isUnauthorized(): boolean {
    return this.status === 401;
  }

  /** The server could not be asked at all. */
  get isTransport(): boolean {
    return this.status === 0;
  }
}

/** The fault a `Status` object tells of; what is no such object is described by its HTTP status alone. */
export function faultOfStatus(body: unknown, status: number, retryAfterMs?: number): KubeError {
  const said = typeof body === "object" && body !== null ? (body as Readonly<Record<string, unknown>>) : {};
  const code = typeof said.code === "number" && said.code > 0 ? said.code : status;
  return new KubeError({
    status: code,
    reason: typeof said.reason === "string" && said.reason !== "" ? said.reason : `HTTP ${code}`,
    message: typeof said.message === "string" && said.message !== "" ? said.message : `the API server answered with status ${code}`,
    ...(retryAfterMs !== undefined && { retryAfterMs }),
  });
}
