import { Counter, type Registry } from "prom-client";

/** Counts what is fetched from token issuers, under Istio's names. */
export function keyFetchMetrics(registry: Registry): (came: boolean) => void {
  const counter = (name: string, help: string): Counter =>
    new Counter({ name: `pilot_jwks_resolver_network_fetch_${name}_total`, help, registers: [registry] });
  const [success, fail] = [counter("success", "Documents of token issuers fetched."), counter("fail", "Those that could not be fetched.")];
  return (came) => (came ? success : fail).inc();
}
