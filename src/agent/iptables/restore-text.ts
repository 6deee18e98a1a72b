import { OWN_CHAINS, type TableName, type TableRules } from "./intercept-rules.ts";

const TABLES: readonly TableName[] = ["raw", "mangle", "nat"];

/** Reads of what `iptables-save` prints the part that is ours: our chains, and the rules elsewhere that lead to them. */
export function readSaved(text: string): readonly TableRules[] {
  const found = new Map<TableName, { readonly chains: Map<string, string[]>; readonly jumps: string[] }>();
  let table: ReturnType<typeof found.get>;
  for (const line of text.split("\n")) {
    const [, name] = /^\*(\w+)$/.exec(line.trim()) ?? [];
    if (name !== undefined) {
      const known = TABLES.find((one) => one === name);
      table = { chains: new Map(), jumps: [] };
      if (known !== undefined) found.set(known, table);
    }
    const [, declared] = /^:(\S+) /.exec(line) ?? [];
    if (declared !== undefined && OWN_CHAINS.includes(declared)) table?.chains.set(declared, []);
    const [, chain = "", rule = ""] = /^-A (\S+) (.*?)\s*$/.exec(line) ?? [];
    const own = table?.chains.get(chain);
    if (own !== undefined) own.push(rule);
    else if (OWN_CHAINS.includes(/-j (\S+)/.exec(rule)?.[1] ?? "")) table?.jumps.push(`${chain} ${rule}`);
  }
  return TABLES.flatMap((name) => {
    const { chains, jumps } = found.get(name) ?? { chains: new Map<string, string[]>(), jumps: [] };
    return chains.size + jumps.length === 0 ? [] : [{ table: name, chains, jumps }];
  });
}

/** Whether what is in force is exactly what is wanted. */
export const sameRules = (a: readonly TableRules[], b: readonly TableRules[]): boolean => signature(a) === signature(b);

const signature = (rules: readonly TableRules[]): string =>
  JSON.stringify(rules.map(({ table, chains, jumps }) => [table, [...chains].sort(([a], [b]) => (a < b ? -1 : 1)), jumps]));

/**
 * Input of `iptables-restore --noflush` that leads from what is in force to what is wanted, one transaction a table. A chain that is declared is
 * emptied, so that nothing is ever there twice; chains that are not wanted any more go; rules of others stay as they are.
 */
export function restoreText(wanted: readonly TableRules[], inForce: readonly TableRules[] = []): string {
  const lines: string[] = [];
  for (const name of TABLES) {
    const next = wanted.find(({ table }) => table === name);
    const now = inForce.find(({ table }) => table === name);
    if (next === undefined && now === undefined) continue;
    const kept = [...(next?.chains.keys() ?? [])];
    const stale = [...(now?.chains.keys() ?? [])].filter((chain) => !kept.includes(chain));
    lines.push(
      `*${name}`,
      ...[...kept, ...stale].map((chain) => `:${chain} - [0:0]`),
      ...(now?.jumps ?? []).map((jump) => `-D ${jump}`),
      ...[...(next?.chains ?? [])].flatMap(([chain, rules]) => rules.map((rule) => `-A ${chain} ${rule}`)),
      ...(next?.jumps ?? []).map((jump) => `-A ${jump}`),
      ...stale.map((chain) => `-X ${chain}`),
      "COMMIT",
    );
  }
  return lines.length === 0 ? "" : `${lines.join("\n")}\n`;
}
