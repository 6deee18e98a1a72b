/**
 * A query that threw, as a value: kept in the cache and thrown again on every read until something it read changes.
 * The error of the query that failed first travels unchanged through its readers, so `queryName` and `key` always
 * name the origin, and two errors with the same message are the same error (that is what cuts off).
 */
export class QueryError extends Error {
  override readonly name: string = "QueryError";
  /** Name of the query in which the error arose. */
  readonly queryName: string;
  /** Interned key of that query. */
  readonly key: string;

  constructor(queryName: string, key: string, cause: unknown) {
    super(`query ${queryName}(${key}) failed: ${messageOf(cause)}`, { cause });
    this.queryName = queryName;
    this.key = key;
  }
}

/**
 * Queries that ask for each other. Every query on the cycle gets this error, whichever was asked first and whether or
 * not it catches errors: otherwise the result would depend on the order of the questions.
 */
export class QueryCycleError extends QueryError {
  override readonly name: string = "QueryCycleError";
  /** Labels along the cycle, the smallest first, without repeating the first at the end. */
  readonly chain: readonly string[];

  constructor(queryName: string, key: string, chain: readonly string[]) {
    super(queryName, key, undefined);
    this.message = `query cycle: ${[...chain, ...chain.slice(0, 1)].join(" → ")}`;
    this.chain = chain;
  }
}

/** In `recheck` mode: a cached value was not what computing it again gave, so the query is not pure. Never cached. */
export class EngineRecheckError extends Error {
  override readonly name = "EngineRecheckError";

  constructor(label: string, cached: unknown, fresh: unknown) {
    super(`query ${label} is not pure: cached ${show(cached)}, computed again ${show(fresh)}`);
  }
}

/** The engine was used against its contract (a write inside a query, an unknown index): a bug of the caller. */
export class EngineInvariantError extends Error {
  override readonly name = "EngineInvariantError";
}

/** Throws {@link EngineInvariantError} unless `condition` holds. */
export function invariant(condition: boolean, message: string): asserts condition {
  if (!condition) throw new EngineInvariantError(message);
}

/**
 * Whether an error says something about the engine or the process rather than about the inputs. Such an error is
 * passed on and not remembered: a stack overflow depends on who asked, so caching it would not equal computing anew.
 */
export function isFault(error: unknown): boolean {
  return error instanceof EngineRecheckError || (error instanceof RangeError && error.message.includes("call stack"));
}

function messageOf(cause: unknown): string {
  return cause instanceof Error ? cause.message : String(cause);
}

function show(value: unknown): string {
  if (value instanceof Error) return value.message;
  try {
    return (JSON.stringify(value) ?? String(value)).slice(0, 300);
  } catch {
    return String(value);
  }
}
