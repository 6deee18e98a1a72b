/** A fault of the world: disk, peer, registry, port. Thrown; `hint` tells the operator what to do next. */
export class EdgeError extends Error {
  override readonly name = "EdgeError";
  readonly code: EdgeErrorCode;
  readonly hint: string | undefined;

  constructor(code: EdgeErrorCode, message: string, options: { cause?: unknown; hint?: string } = {}) {
    super(message, { cause: options.cause });
    this.code = code;
    this.hint = options.hint;
  }
}

/** What kind of fault it is: a program decides by it, a person reads the message and the hint. */
export type EdgeErrorCode =
  | "mesh_config_invalid"
  | "port_taken"
  | "file_unreadable"
  | "state_unwritable"
  | "ca_unusable"
  | "control_plane_unreachable"
  | "clock_wrong"
  | "envoy_missing"
  | "interception_failed"
  | "kubernetes_unusable"
  | "not_found"
  | "usage";

/** A bug of ours: states what must hold. */
export function invariant(condition: unknown, message: string): asserts condition {
  if (!condition) throw new Error(`invariant broken: ${message}`);
}

/** Makes a `switch` over a closed union exhaustive. */
export function assertNever(value: never): never {
  throw new Error(`unexpected value: ${JSON.stringify(value)}`);
}

/** What was thrown, as text. A connection that was tried at several addresses fails with a fault for each, and says nothing itself. */
export function messageOf(error: unknown): string {
  if (error instanceof AggregateError && error.message === "") return [...new Set(error.errors.map(messageOf))].join("; ");
  return error instanceof Error ? error.message : String(error);
}

/** What is wrong, without the advice that Node gives programmers with it. */
export const firstSentenceOf = (error: unknown): string => /^.*?(?=\. |\n|$)/.exec(messageOf(error))?.[0] ?? "";
