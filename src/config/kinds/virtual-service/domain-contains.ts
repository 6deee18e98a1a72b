/** Whether every host that `inner` stands for is one that `outer` stands for. Both may start with a wildcard; case does not count. */
export function domainContains(outer: string, inner: string): boolean {
  const out = outer.toLowerCase();
  const into = inner.toLowerCase();
  if (!out.startsWith("*")) return out === into;
  const suffix = out.slice(1);
  const rest = into.startsWith("*") ? into.slice(1) : into;
  return rest.endsWith(suffix) && (into.startsWith("*") || rest.length > suffix.length);
}
