import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { startOurs, startPeer } from "./contestant.ts";
import { round } from "./measurement.ts";
import { type Match, type PeerExtent, runAll } from "./peer.ts";
import { type Compared, compare, FIGURES, type Figure, type Run, type RunName } from "./peer-figures.ts";
import { secureFlags, tokenFiles } from "./secure-flags.ts";
import { createTokenIssuer } from "./token-issuer.ts";
import { loadClient } from "./xdsload.ts";

/** A figure over TLS beside the same in plaintext, both of ours. */
export interface OverTls extends Compared {
  readonly plaintext?: number;
  /** How many times the CPU of plaintext it takes. */
  readonly timesPlaintext?: number;
}

/** How many times the CPU of plaintext the same may take over TLS. */
const TLS_TIMES = 1.7;
/** They are about the time before anybody connects. */
const BEFORE_CONNECTIONS: readonly string[] = ["start to ready", "memory when ready"];

type Runs = ReadonlyMap<RunName, Run>;

/**
 * The rows of the comparison over TLS with a token for each workload: ours in plaintext, ours over TLS, then a peer over TLS where there is one. Ours judges signed
 * tokens of an issuer it knows; a peer is to take `NAMESPACE:ACCOUNT` for a token and to write its root to `DIRECTORY/root-cert.pem`.
 */
export async function compareOverTls(
  command: string | undefined,
  extent: PeerExtent,
  told: (row: OverTls) => void,
): Promise<readonly OverTls[]> {
  const client = loadClient();
  const work = mkdtempSync(join(tmpdir(), "bench-tls-"));
  const names: readonly RunName[] = ["plain", "vhds", "restart"];
  try {
    const plaintext = await runAll(names, { who: "ours in plaintext", client, extent, work, start: startOurs });
    const ours = await runAll([...names, "csr"], { who: "ours", client, extent, work, ...believingTokens(extent) });
    const peer: Runs =
      command === undefined
        ? new Map()
        : await runAll(["plain", "restart", "csr"], { who: "peer", client, extent, work, ...believingTexts(command) });
    const rows = FIGURES.filter(({ scenario }) => !BEFORE_CONNECTIONS.includes(scenario)).flatMap(
      (figure) => overTls(figure, { plaintext, ours, peer }) ?? [],
    );
    for (const row of rows) told(row);
    return rows;
  } finally {
    rmSync(work, { recursive: true, force: true });
  }
}

/** One row: what is wanted of it beside the peer holds over TLS too, and its CPU is to stay near that of plaintext. */
export function overTls(
  figure: Figure,
  { plaintext, ours, peer }: { readonly plaintext: Runs; readonly ours: Runs; readonly peer: Runs },
): OverTls | undefined {
  const row = compare(figureOverTls(figure), ours, peer);
  const bare = plaintext.get(figure.run);
  const without = bare && figure.read(bare);
  if (row === undefined || without === undefined) return row;
  if (figure.unit !== "CPU s" || without === 0) return { ...row, plaintext: without };
  const timesPlaintext = row.ours / without;
  const goal = [row.goal, `at most ${TLS_TIMES}× plaintext`].filter((one) => one !== undefined).join(", ");
  return { ...row, plaintext: without, timesPlaintext, goal, ok: row.ok !== false && timesPlaintext <= TLS_TIMES };
}

/** What is wanted over TLS. A number of CPU seconds that plaintext may take, and the ratio it stands for elsewhere, give as much way as CPU may over TLS. */
function figureOverTls(figure: Figure): Figure {
  if (figure.timesOverTls !== undefined) return { ...figure, times: figure.timesOverTls };
  const { unit, limit, times } = figure;
  if (unit !== "CPU s" || limit === undefined || times === undefined) return figure;
  return { ...figure, limit: round(limit * TLS_TIMES), times: round(times / TLS_TIMES) };
}

/** Ours, with an issuer of tokens that it knows and a token for each workload of the scene. */
function believingTokens({ scene, restarted }: PeerExtent): Pick<Match, "start" | "calls"> {
  const issuer = createTokenIssuer();
  return {
    async start(directory, work) {
      const home = join(work, "ours");
      mkdirSync(join(home, "etc/istio"), { recursive: true });
      await issuer.introduce(home);
      return startOurs(directory, work);
    },
    calls(contestant, { work }) {
      const roots = join(work, "ours/etc/cacerts/root-cert.pem");
      return secureFlags(contestant, { roots, token: tokenFiles(work, issuer, [scene, restarted]) });
    },
  };
}

/** Another one. */
const believingTexts = (command: string): Pick<Match, "start" | "calls"> => ({
  start: (directory, work) => startPeer(command, directory, work),
  calls(contestant, { scene, work }) {
    const [roots, token] = [join(scene, "root-cert.pem"), join(work, "token")];
    if (!existsSync(roots)) throw new Error(`${command} is to write its root certificate to DIRECTORY/root-cert.pem before it is ready`);
    writeFileSync(token, "{{NS}}:{{SA}}");
    return secureFlags(contestant, { roots, token });
  },
});

/** The JSON line of a row. */
export const overTlsLine = (row: OverTls): string =>
  JSON.stringify({ bench: "peer-tls", ...row }, (_, value: unknown) => (typeof value === "number" ? round(value) : value));

/** The rows as a table. */
export function overTlsTable(rows: readonly OverTls[]): readonly string[] {
  const number = (value: number | undefined): string => (value === undefined ? "" : String(round(value)));
  return [
    "| scenario | unit | ours | ours in plaintext | times | peer | ratio | goal |",
    "| --- | --- | --- | --- | --- | --- | --- | --- |",
    ...rows.map(({ scenario, unit, ours, plaintext, timesPlaintext, peer, ratio, goal, ok }) => {
      const verdict = goal === undefined ? "" : `${goal}${ok === false ? ": **missed**" : ""}`;
      const numbers = [plaintext, timesPlaintext, peer, ratio].map(number).join(" | ");
      return `| ${scenario} | ${unit} | **${number(ours)}** | ${numbers} | ${verdict} |`;
    }),
  ];
}
