/** What one document may cost. Far above any real object; there so that a hostile or damaged file is refused, not served. */
export interface DocumentLimits {
  /** Levels of nesting, aliases followed. */
  readonly maxDepth: number;
  /** Uses of aliases (`*name`) in one document. */
  readonly maxAliases: number;
  /** Values a document with aliases may stand for once they are followed. */
  readonly maxNodes: number;
  /** Which value of a key counts that is given twice. Default: none, it is a fault. */
  readonly repeatedKeys?: "last";
}

/** Those in force. */
export const DOCUMENT_LIMITS: DocumentLimits = { maxDepth: 100, maxAliases: 1_000, maxNodes: 200_000 };
