import { request as requestPlain } from "node:http";
import { request as requestSecure } from "node:https";
import type { Secret } from "../base/secret.ts";

/** How a Vault server is called, read anew for each question: files may have been replaced. */
export interface VaultAccess {
  readonly token: Secret<string>;
  /** Roots in PEM that the server is verified with; the platform's where there are none. */
  readonly roots?: string;
}

export interface VaultClientOptions {
  /** `https://vault.example:8200`. */
  readonly address: string;
  /** Where the KV engine (version 2) is mounted. */
  readonly mount: string;
  /** A namespace of Vault Enterprise; empty for none. */
  readonly namespace: string;
  /** Rejects with a sentence where there is no token. */
  access(): Promise<VaultAccess>;
}

/** One secret: its values by name, and which version of it this is: numbers begin anew where all of a secret was deleted, so the time belongs to it. */
export interface VaultSecret {
  readonly version: string;
  readonly values: Readonly<Record<string, unknown>>;
}

/** Asks a Vault server. */
export interface VaultClient {
  /** The secret at a path below the mount; undefined where there is none, or its last version was deleted. Rejects with a sentence. */
  read(path: string): Promise<VaultSecret | undefined>;
}

const TIMEOUT_MS = 5_000;
const LARGEST = 1024 * 1024;
const NOT_FOUND = 404;

/**
 * Reads the KV secrets engine, version 2, over its HTTP API (https://developer.hashicorp.com/vault/api-docs/secret/kv/kv-v2, "Read secret version").
 * Redirects are not followed: the token would go with them.
 */
export function vaultClient({ address, mount, namespace, access }: VaultClientOptions): VaultClient {
  return {
    async read(path) {
      const { token, roots } = await access();
      const url = new URL(`${address.replace(/\/+$/, "")}/v1/${encoded(mount)}/data/${encoded(path)}`);
      const { status, body } = await ask(url, {
        headers: {
          "x-vault-token": token.reveal(),
          "x-vault-request": "true",
          ...(namespace !== "" && { "x-vault-namespace": namespace }),
        },
        ...(roots !== undefined && { ca: roots }),
      });
      // A secret whose last version was deleted is answered with this status too, and with its metadata.
      if (status === NOT_FOUND) return undefined;
      if (status !== 200) throw new Error(`${address} answers with status ${status}${errorsIn(body)}`);
      return secretIn(body) ?? fail(`${address} answers with something that is no secret of a KV engine of version 2`);
    },
  };
}

/** A name may have dots, but it must not lead elsewhere. */
function encoded(path: string): string {
  const parts = path.split("/").filter(Boolean);
  if (parts.some((part) => part === "." || part === "..")) fail(`"${path}" is no path of a secret`);
  return parts.map(encodeURIComponent).join("/");
}

interface AskOptions {
  readonly headers: Readonly<Record<string, string>>;
  readonly ca?: string;
}

function ask(url: URL, options: AskOptions): Promise<{ readonly status: number; readonly body: string }> {
  const request = url.protocol === "http:" ? requestPlain : requestSecure;
  return new Promise((resolve, reject) => {
    const outgoing = request(url, { ...options, agent: false, signal: AbortSignal.timeout(TIMEOUT_MS) }, (response) => {
      const pieces: Buffer[] = [];
      let size = 0;
      response.on("data", (piece: Buffer) => {
        size += piece.length;
        if (size > LARGEST) response.destroy(new Error(`${url.origin} answers with more than ${LARGEST} bytes`));
        else pieces.push(piece);
      });
      response.on("end", () => resolve({ status: response.statusCode ?? 0, body: Buffer.concat(pieces).toString("utf8") }));
      response.on("error", reject);
    });
    outgoing.on("error", (error) => reject(new Error(`${url.origin} cannot be asked: ${error.message}`)));
    outgoing.end();
  });
}

function secretIn(body: string): VaultSecret | undefined {
  const { data } = objectOf(parsed(body));
  const { data: values, metadata } = objectOf(data);
  const { version, created_time: since } = objectOf(metadata);
  return typeof version === "number" && typeof values === "object" && values !== null
    ? { version: `${version} ${String(since)}`, values: objectOf(values) }
    : undefined;
}

/** What Vault says is wrong; it never quotes secrets. */
function errorsIn(body: string): string {
  const { errors } = objectOf(parsed(body));
  return Array.isArray(errors) && errors.length > 0 ? `: ${errors.map(String).join("; ").slice(0, 300)}` : "";
}

function parsed(body: string): unknown {
  try {
    return JSON.parse(body);
  } catch {
    return undefined;
  }
}

const objectOf = (value: unknown): Readonly<Record<string, unknown>> =>
  typeof value === "object" && value !== null && !Array.isArray(value) ? (value as Readonly<Record<string, unknown>>) : {};

function fail(sentence: string): never {
  throw new Error(sentence);
}
