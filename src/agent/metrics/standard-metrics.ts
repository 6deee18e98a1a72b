import { OVERFLOW, RAW } from "../../model/standard-metrics.ts";
import { istioLines } from "./envoy-lines.ts";
import { readLabels } from "./label-text.ts";
import { Ledger } from "./ledger.ts";
import { MOST_PEERS, type Peers, peerName } from "./peers.ts";
import { type Family, familyText, SeriesReader, type Shapes } from "./series.ts";
import { identityOf, overflowLabels, standardLabels, type Workloads } from "./standard-labels.ts";
import { everywhere, type WorkloadFacts } from "./workload-facts.ts";

/** Istio's metrics among Envoy's, on every page that is asked for. */
export interface StandardMetrics {
  /** Begins a page. One that does not show all that there is (a filter was asked for) is not remembered. */
  page(options: { readonly all: boolean }): MetricPage;
  /** Series that were summed up because there were too many. */
  readonly beyond: number;
}

/** One page of Envoy's. */
export interface MetricPage {
  /** Whether a line was one of Istio's metrics; it is kept then, and the others are passed on. */
  take(line: string): boolean;
  /** Istio's metrics with their labels put in; empty where there are none. A page that broke off shows what was there before. */
  text(brokeOff: boolean): Promise<string>;
}

export interface StandardMetricsOptions {
  readonly peers: Peers;
  /** Where the workload beside the agent is, as peers are named; and what its node says of it. */
  readonly self: { readonly name: string; readonly facts: WorkloadFacts; readonly principal: string };
}

/** Series of Envoy's that differ only in what stands for labels come out as one. */
export function createStandardMetrics({ peers, self }: StandardMetricsOptions): StandardMetrics {
  const books = new Ledger();
  const shapes: Shapes = new Map();
  const workloads: Workloads = {
    // Asked each time: only the certificate, once it is there, says what the trust domain is.
    get principal() {
      return self.principal;
    },
    self: () => peers.at(self.name) ?? self.facts,
    peer(identity, address) {
      const name = peerName(identity, address);
      return peers.at(name) ?? (peers.tooMany(name) ? { ...everywhere(OVERFLOW), workload_namespace: identity.namespace } : undefined);
    },
  };
  const shown = ({ shape }: Family, labels: string): string => standardLabels(shape.name, labels, workloads);
  return {
    get beyond() {
      return books.carriedBeyond;
    },
    page({ all }) {
      const reader = new SeriesReader(shapes);
      const before = books.pages;
      return {
        take(line) {
          const lines = istioLines(line);
          if (lines === undefined) return false;
          for (const one of lines) reader.take(one);
          return true;
        },
        async text(brokeOff) {
          const { families } = reader;
          const met = peersIn(families);
          if (met !== undefined) await peers.learn([self.name, ...met]);
          const ledger = all ? books : new Ledger();
          // Of two pages at the same time nobody knows which is the newer: the second shows what the first one brought.
          if (!brokeOff && (!all || books.pages === before)) ledger.enter(families, shown, overflowLabels);
          return [...ledger.sums()].map(({ shape, series }) => familyText(shape, series)).join("");
        },
      };
    },
  };
}

/** Peers that series speak of; undefined where there are no series. */
function peersIn(families: ReadonlyMap<string, Family>): ReadonlySet<string> | undefined {
  const names = new Set<string>();
  let any = false;
  for (const { series } of families.values())
    for (const text of series.keys()) {
      any = true;
      if (!text.includes('reporter="destination"')) continue;
      const labels = readLabels(text);
      const [address = "", identity] = [labels.get(RAW.peer), identityOf(labels.get("source_principal") ?? "")];
      if (address !== "" && identity !== undefined) names.add(peerName(identity, address));
      if (names.size > 2 * MOST_PEERS) return names;
    }
  return any ? names : undefined;
}
