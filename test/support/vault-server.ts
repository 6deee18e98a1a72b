import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { onTestFinished } from "vitest";

/** A server that answers as Vault's KV engine, version 2, does. */
export interface VaultServer {
  readonly address: string;
  readonly token: string;
  /** Writes a new version of a secret at `secret/<path>`. */
  put(path: string, values: Readonly<Record<string, string>>): void;
  /** Deletes all of it, so that the next version is the first again. */
  forget(path: string): void;
  /** Deletes the last version; its metadata stay. */
  delete(path: string): void;
  /** Answers as a sealed Vault does from now on, or no longer. */
  seal(sealed: boolean): void;
  /** Paths that were asked for. */
  readonly asked: readonly string[];
}

interface Kept {
  readonly version: number;
  /** How many were made before it, of all. */
  readonly order: number;
  readonly values: Readonly<Record<string, string>> | null;
}

/**
 * Vault's answers to "Read secret version", as its API documentation gives them (a secret, a version that was deleted, one that never was, a token that may
 * not, a sealed server): Vault itself is too large to build for a test.
 */
export async function startVaultServer(): Promise<VaultServer> {
  const kept = new Map<string, Kept>();
  const asked: string[] = [];
  const token = "hvs.test-token";
  let sealed = false;
  let made = 0;
  const answerTo = (path: string, shown: string | undefined): readonly [status: number, body: object] => {
    if (sealed) return [503, { errors: ["Vault is sealed"] }];
    if (shown !== token) return [403, { errors: ["permission denied"] }];
    const found = kept.get(path);
    if (found === undefined) return [404, { errors: [] }];
    const deletion = found.values === null ? "2026-01-02T03:04:05.6Z" : "";
    const metadata = {
      created_time: `2026-01-01T00:00:00.${found.order}Z`,
      custom_metadata: null,
      deletion_time: deletion,
      destroyed: false,
    };
    const data = { data: found.values, metadata: { ...metadata, version: found.version } };
    return [
      found.values === null ? 404 : 200,
      { request_id: "r", lease_id: "", renewable: false, lease_duration: 0, data, wrap_info: null },
    ];
  };
  const server = createServer((request, response) => {
    const path = decodeURIComponent(/^\/v1\/secret\/data\/(.*)$/.exec(request.url ?? "")?.[1] ?? "");
    asked.push(path);
    const [status, body] = answerTo(path, request.headers["x-vault-token"]?.toString());
    response.writeHead(status, { "content-type": "application/json" });
    response.end(JSON.stringify(body));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  onTestFinished(() => {
    server.close();
    server.closeAllConnections();
  });
  const next = (path: string, values: Kept["values"]): void => {
    const { version = 0, order = 0 } = kept.get(path) ?? {};
    if (values !== null) made += 1;
    kept.set(path, { version: version + (values === null ? 0 : 1), order: values === null ? order : made, values });
  };
  return {
    address: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    token,
    put: next,
    delete: (path) => next(path, null),
    forget: (path) => void kept.delete(path),
    seal(now) {
      sealed = now;
    },
    asked,
  };
}
