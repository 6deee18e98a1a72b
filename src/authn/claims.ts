import type { Claims } from "./json-web-token.ts";

/** The claim at a dotted path. A name may itself hold dots (`kubernetes.io`): the longest that exists is taken at each step. */
export function claimAt(claims: Claims, path: string): unknown {
  const steps = path.split(".");
  let value: unknown = claims;
  for (let from = 0; from < steps.length; ) {
    const to = longestName(value, steps, from);
    if (to === undefined) return undefined;
    value = (value as Claims)[steps.slice(from, to).join(".")];
    from = to;
  }
  return value;
}

function longestName(value: unknown, steps: readonly string[], from: number): number | undefined {
  if (typeof value !== "object" || value === null) return undefined;
  for (let to = steps.length; to > from; to--) if (Object.hasOwn(value, steps.slice(from, to).join("."))) return to;
  return undefined;
}
