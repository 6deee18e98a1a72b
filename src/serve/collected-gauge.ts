import { Gauge, type Registry } from "prom-client";

/** Adds a gauge that is read when it is asked for. */
export function collectedGauge(
  registry: Registry,
  name: string,
  { help, read }: { readonly help: string; readonly read: () => number },
): void {
  new Gauge({
    name,
    help,
    registers: [registry],
    collect() {
      this.set(read());
    },
  });
}
