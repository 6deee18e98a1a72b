import { mkdtempSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { TokenIssuer } from "./token-issuer.ts";
import type { LoadShape } from "./xdsload.ts";

/** How the load client calls a server over TLS, as flags. */
export const secureFlags = (
  { securePort }: { readonly securePort: number },
  { roots, token }: { readonly roots: string; readonly token: string },
): readonly string[] => ["--address", `127.0.0.1:${securePort}`, "--tls", "--ca", roots, "--token", token];

/** Who the client is when it asks for certificates. */
const ASKS_FOR_CERTIFICATES = { namespace: "ns-0", account: "default" };

/** Writes a token for each workload of these scenes; gives the name by which the client finds that of a proxy. */
export function tokenFiles(directory: string, issuer: TokenIssuer, shapes: readonly Workloads[]): string {
  const tokens = mkdtempSync(join(directory, "tokens-"));
  for (const { namespace, account } of [...shapes.flatMap(workloadsOf), ASKS_FOR_CERTIFICATES])
    writeFileSync(join(tokens, `${namespace}.${account}`), issuer.tokenFor(namespace, account));
  return join(tokens, "{{NS}}.{{SA}}");
}

type Workloads = Pick<LoadShape, "classes" | "namespaces">;

/** Who the proxies of a scene of the client are: each class is a workload with an account of its own. */
const workloadsOf = ({ classes, namespaces }: Workloads): readonly { readonly namespace: string; readonly account: string }[] =>
  Array.from({ length: classes }, (_, index) => ({ namespace: `ns-${index % namespaces}`, account: `app-${index}` }));
