import { readFile } from "node:fs/promises";
import { resolve } from "node:path";
import type { Clock } from "../base/clock.ts";
import { messageOf } from "../base/errors.ts";
import type { Log } from "../base/log.ts";
import { Secret } from "../base/secret.ts";
import type { LoadedMesh } from "../config/mesh/load-mesh.ts";
import type { CredentialSource } from "../credentials/credential-source.ts";
import { type VaultAccess, vaultClient } from "../credentials/vault-client.ts";
import { firstOf, vaultCredentials } from "../credentials/vault-credentials.ts";
import type { HealthCheck } from "./health.ts";

export interface VaultOptions {
  readonly baseDir: string;
  readonly env: NodeJS.ProcessEnv;
  readonly mesh: LoadedMesh;
  readonly clock: Clock;
  readonly log: Log;
  /** Credentials have changed. */
  changed(): void;
}

/** Where credentials come from, all told. */
export interface Credentials {
  readonly source: CredentialSource;
  checks(): readonly HealthCheck[];
  stop(): void;
}

/** Secret objects first, then the Vault server that mesh.yaml names, if it names one. */
export function withVault(stored: CredentialSource, options: VaultOptions): Credentials {
  const { address, mount, path, namespace } = options.mesh.process.vault;
  if (address === undefined) return { source: stored, checks: () => [], stop() {} };
  if (!/^https:|^http:\/\/(localhost|127\.|\[::1\])/i.test(address))
    options.log.warn({ address }, "Vault is called in plaintext: whoever is on the way reads its token and all keys");
  const vault = vaultCredentials({
    client: vaultClient({ address, mount, namespace, access: () => accessOf(options) }),
    path,
    refreshMs: options.mesh.settings.vaultRefreshMs,
    clock: options.clock,
    log: options.log,
    changed: options.changed,
  });
  return {
    source: firstOf(stored, vault),
    checks: () => [
      {
        name: `vault ${address}`,
        ok: vault.fault === undefined,
        blocks: false,
        detail: vault.fault === undefined ? "it answers" : `${vault.fault}; what it said last stays in force`,
      },
    ],
    stop: vault.stop,
  };
}

/** The token never enters the settings: those are shown and compared. */
async function accessOf({ baseDir, env, mesh }: VaultOptions): Promise<VaultAccess> {
  const { tokenFile, caCertificates } = mesh.process.vault;
  const read = async (file: string): Promise<string> => {
    try {
      return await readFile(resolve(baseDir, file), "utf8");
    } catch (error) {
      throw new Error(`${file} cannot be read: ${messageOf(error)}`);
    }
  };
  const token = (tokenFile === undefined ? (env.VAULT_TOKEN ?? "") : await read(tokenFile)).trim();
  if (token === "") throw new Error("there is no token for Vault: name a file in vault.tokenFile, or set VAULT_TOKEN");
  return { token: new Secret(token), ...(caCertificates !== undefined && { roots: await read(caCertificates) }) };
}
