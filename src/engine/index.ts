export { createEngine } from "./engine.ts";
export { EngineInvariantError, EngineRecheckError, QueryCycleError, QueryError } from "./errors.ts";
export { same } from "./same.ts";
export type {
  Engine,
  EngineOptions,
  EngineStats,
  InputRef,
  Lease,
  OverlayChange,
  PrimitiveKey,
  Query,
  QueryDef,
  QueryStats,
  Result,
  Table,
  TableDef,
} from "./types.ts";
