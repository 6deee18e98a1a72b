/**
 * Asks once for a key: for a query that asks others for the same few keys again and again. What is remembered is not recorded again, so it must not
 * outlive the run of the query that made it.
 */
export function remembered<K, V>(ask: (key: K) => V): (key: K) => V {
  const known = new Map<K, V>();
  return (key) => {
    if (known.has(key)) return known.get(key) as V;
    const answer = ask(key);
    known.set(key, answer);
    return answer;
  };
}
