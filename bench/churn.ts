import { systemClock } from "../src/base/clock.ts";
import type { Client } from "./client.ts";
import type { Fleet } from "./fleet.ts";
import { quantile } from "./measurement.ts";
import { replaceFile, routeEdit } from "./scene.ts";

/** How many changes a second are made, for how long. */
export interface ChurnPace {
  readonly rate: number;
  readonly seconds: number;
}

/** How changes came to the proxies that were made whether or not those before them had come. Times in ms. */
export interface Churned {
  readonly changes: number;
  /** From a change to when a proxy had it or a later one, over all changes and proxies. */
  readonly p50: number;
  readonly p99: number;
  /** From the last change to when every proxy had it. */
  readonly drain: number;
  /** Responses with changes that a proxy got, on average: several changes may come in one. */
  readonly deliveries: number;
}

const PATIENCE_MS = 120_000;
const POLL_MS = 5;

/** Changes one route again and again at a pace of its own: what the server does not keep up with falls behind, and shows as lag. */
export async function churn(
  { fleet, home }: { readonly fleet: Fleet; readonly home: string },
  { rate, seconds }: ChurnPace,
  nextStep: () => number,
): Promise<Churned> {
  const made = new Map<string, number>();
  const seen = new Map<Client, { readonly marker: string; readonly at: number }[]>();
  const { marker: first } = routeEdit(0);
  const stop = fleet.follow({ text: first.slice(0, first.lastIndexOf("-") + 1), length: first.length }, (client, markers, at) => {
    const list = seen.get(client) ?? [];
    seen.set(client, list);
    list.push({ marker: [...markers].sort().at(-1) ?? "", at });
  });
  const start = systemClock.monotonic();
  let last = "";
  for (let turn = 0; turn < rate * seconds; turn++) {
    await systemClock.sleep(Math.max(0, start + (turn * 1000) / rate - systemClock.monotonic()));
    const edit = routeEdit(nextStep());
    const apply = await replaceFile(home, edit);
    last = edit.marker;
    made.set(last, systemClock.monotonic());
    await apply();
  }
  const reached = (): number => [...seen.values()].filter((list) => (list.at(-1)?.marker ?? "") >= last).length;
  for (const from = systemClock.monotonic(); reached() < fleet.size; await systemClock.sleep(POLL_MS))
    if (systemClock.monotonic() - from > PATIENCE_MS) throw new Error(`not every proxy had the last change within ${PATIENCE_MS} ms`);
  stop();
  const lags = [...made].flatMap(([marker, at]) => [...seen.values()].map((list) => (arrivalOf(marker, list) ?? Number.NaN) - at));
  const arrivals = [...seen.values()].map((list) => arrivalOf(last, list) ?? 0);
  return {
    changes: made.size,
    p50: quantile(lags, 0.5),
    p99: quantile(lags, 0.99),
    drain: Math.max(...arrivals) - (made.get(last) ?? 0),
    deliveries: [...seen.values()].reduce((sum, list) => sum + list.length, 0) / Math.max(1, seen.size),
  };
}

/** When a change, or a later one, had come. Markers are of one width, so that later ones are greater. */
const arrivalOf = (marker: string, list: readonly { readonly marker: string; readonly at: number }[]): number | undefined =>
  list.find((one) => one.marker >= marker)?.at;
