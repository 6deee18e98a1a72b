import type { DocumentLimits } from "./document-limits.ts";

interface Measure {
  readonly nodes: number;
  readonly height: number;
}

/**
 * Says what is wrong with the size of a value, counting shared parts as often as they are used, in time proportional to what is
 * really in memory. Finds a value that contains itself. Undefined when all is well.
 */
export function measureValue(value: unknown, limits: Pick<DocumentLimits, "maxDepth" | "maxNodes">): string | undefined {
  const known = new Map<object, Measure>();
  const open = new Set<object>();
  let fault: string | undefined;

  const measure = (node: unknown, depth: number): Measure => {
    if (fault !== undefined || typeof node !== "object" || node === null) return LEAF;
    const before = known.get(node);
    if (before !== undefined) return before;
    if (open.has(node)) {
      fault = "has an alias that contains itself";
      return LEAF;
    }
    if (depth > limits.maxDepth) {
      fault = `nests more than ${limits.maxDepth} levels deep`;
      return LEAF;
    }
    open.add(node);
    let nodes = 1;
    let height = 0;
    for (const child of Object.values(node)) {
      const one = measure(child, depth + 1);
      nodes += one.nodes;
      if (one.height > height) height = one.height;
    }
    open.delete(node);
    const result = { nodes, height: height + 1 };
    known.set(node, result);
    return result;
  };

  const total = measure(value, 1);
  if (fault !== undefined) return fault;
  if (total.height > limits.maxDepth) return `nests more than ${limits.maxDepth} levels deep once its aliases are followed`;
  if (total.nodes > limits.maxNodes) return `stands for more than ${limits.maxNodes} values once its aliases are followed`;
  return undefined;
}

const LEAF: Measure = { nodes: 1, height: 0 };
