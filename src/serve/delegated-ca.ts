import { readFile } from "node:fs/promises";
import { isIP } from "node:net";
import { join, resolve } from "node:path";
import type { Clock } from "../base/clock.ts";
import { msOfDuration } from "../base/duration.ts";
import { EdgeError, messageOf } from "../base/errors.ts";
import type { Log } from "../base/log.ts";
import { Secret } from "../base/secret.ts";
import { writeWholeFile } from "../base/whole-file.ts";
import { type Signer, SigningError } from "../ca/authority.ts";
import { type RemoteCall, remoteSigner } from "../ca/remote-signer.ts";
import type { MeshConfig } from "../gen/istio/mesh/v1alpha1/mesh_config_pb.js";
import { parseHostPort } from "../settings/host-port.ts";
import type { HealthCheck } from "./health.ts";

type CaSettings = NonNullable<MeshConfig["ca"]>;

export interface DelegatedCaOptions {
  readonly baseDir: string;
  /** `ca` of mesh.yaml. */
  readonly settings: CaSettings;
  readonly clock: Clock;
  readonly log: Log;
  rootsChanged(): void;
}

/** Signing left to another control plane or CA (`ca.address`). */
export interface DelegatedCa extends Signer {
  /** Roots of the last answer; before the first one, those of the last run or of `etc/certs`. */
  roots(): string;
  checks(): readonly HealthCheck[];
  stop(): void;
}

const PUBLIC_PORT = 443;
const DEFAULT_SERVER_NAME = "istiod.istio-system.svc";
const DEFAULT_TIMEOUT_MS = 10_000;

/** Throws `EdgeError` for an address that is none; nothing is called yet. */
export async function delegatedCa(options: DelegatedCaOptions): Promise<DelegatedCa> {
  const { baseDir, settings, clock, log } = options;
  const at = parseHostPort(settings.address.replace(/^https:\/\//, ""));
  if (typeof at === "string" || at.host === "")
    throw new EdgeError("mesh_config_invalid", `ca.address: ${JSON.stringify(settings.address)} is not of the form host:port`);
  const kept = join(baseDir, "var/lib/istio/ca-roots.pem");
  let roots = (await textOf(kept)) ?? (await textOf(join(baseDir, "etc/certs/root-cert.pem"))) ?? "";
  let fault: string | undefined;
  let saving: Promise<unknown> = Promise.resolve();
  const answered = (next: string): void => {
    if (next === roots) return;
    roots = next;
    log.info({ address: settings.address }, "the CA gave other roots; they are passed on");
    saving = saving
      .then(() => writeWholeFile(kept, next))
      .catch((error: unknown) => log.warn({ reason: messageOf(error) }, "they cannot be kept"));
    options.rootsChanged();
  };
  const signer = remoteSigner({
    ...at,
    call: () => callOf(options, at),
    timeoutMs: settings.requestTimeout === undefined ? DEFAULT_TIMEOUT_MS : msOfDuration(settings.requestTimeout),
    clock,
    answered,
  });
  return {
    async sign(request) {
      try {
        const issued = await signer.sign(request);
        fault = undefined;
        return issued;
      } catch (error) {
        fault = error instanceof SigningError ? error.message : "it failed";
        throw error;
      }
    },
    roots: () => roots,
    checks: () => [
      { name: "CA", ok: fault === undefined, blocks: false, detail: fault ?? `certificates are signed by ${settings.address}` },
    ],
    stop: signer.close,
  };
}

/** Roots and credentials: what `ca.tlsSettings` names, else the leaf in `etc/certs` and the token of this machine. */
async function callOf(
  { baseDir, settings }: DelegatedCaOptions,
  at: { readonly host: string; readonly port: number },
): Promise<RemoteCall> {
  const { caCertificates = "", clientCertificate = "", privateKey = "", sni = "" } = settings.tlsSettings ?? {};
  const below = (path: string): string => resolve(baseDir, path);
  const own = clientCertificate !== "";
  const chain = await textOf(below(own ? clientCertificate : "etc/certs/cert-chain.pem"));
  const key = await textOf(below(own ? privateKey : "etc/certs/key.pem"));
  if (own && (chain === undefined || key === undefined)) throw new Error("ca.tlsSettings: clientCertificate and privateKey cannot be read");
  const token = (await textOf(below("var/run/secrets/tokens/istio-token")))?.trim() ?? "";
  return {
    tls: {
      roots: await rootsFor(baseDir, caCertificates, at.port),
      serverName: sni || (isIP(at.host) === 0 ? at.host : DEFAULT_SERVER_NAME),
      ...(chain !== undefined && key !== undefined && { client: { chain, key: new Secret(key) } }),
    },
    headers: token === "" ? {} : { authorization: `Bearer ${token}` },
  };
}

/** Undefined means those of the platform. */
async function rootsFor(baseDir: string, named: string, port: number): Promise<string | undefined> {
  if (named === "" && port === PUBLIC_PORT) return undefined;
  const file = resolve(baseDir, named || "etc/certs/root-cert.pem");
  const pem = await textOf(file);
  if (pem === undefined)
    throw new Error(`cannot be verified: there are no roots in ${file}; name the file in ca.tlsSettings.caCertificates`);
  return pem;
}

const textOf = (path: string): Promise<string | undefined> => readFile(path, "utf8").catch(() => undefined);
