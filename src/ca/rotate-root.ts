import { readFile, rm } from "node:fs/promises";
import { join } from "node:path";
import type { Clock } from "../base/clock.ts";
import { EdgeError, messageOf } from "../base/errors.ts";
import { writeWholeFile } from "../base/whole-file.ts";
import { type Certificate, readCertificates } from "../pki/certificate.ts";
import { makeBridge } from "./bridge.ts";
import { CA_FILES, type CaMaterial, type CaTexts, readCaMaterial } from "./ca-material.ts";
import { makeRoot } from "./make-root.ts";

/** How far the replacement of a root is. */
export interface Rotation {
  /** `begun`: both roots are trusted, the old one signs. `switched`: both are trusted, the new one signs. */
  readonly step: "none" | "begun" | "switched";
  /** When that was, in milliseconds since the epoch; 0 for `none`. */
  readonly since: number;
  /** The root that is replaced (PEM). Others may be trusted beside it, which stay. */
  readonly replaces?: string;
}

export interface RotationOptions {
  /** `etc/cacerts` under the base directory. */
  readonly directory: string;
  readonly clock: Pick<Clock, "now">;
}

const SIGNING_FILES = ["cert-chain.pem", "ca-cert.pem", "ca-key.pem"] as const;
const NO_ROTATION: Rotation = { step: "none", since: 0 };

/** What the directory says. Throws `EdgeError` where that cannot be read. */
export async function rotationOf({ directory }: Pick<RotationOptions, "directory">): Promise<Rotation> {
  try {
    const value: unknown = JSON.parse(await readFile(recordIn(directory), "utf8"));
    if (isRotation(value)) return value;
    throw new Error("it has another form");
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === "ENOENT") return NO_ROTATION;
    throw refusal(`${recordIn(directory)} cannot be read: ${messageOf(error)}`);
  }
}

/** First step: a new root is made, signed by the old one too, kept aside, and trusted beside the old one. Nothing is signed by it yet. */
export async function beginRotation(
  options: RotationOptions & { readonly trustDomain: string; readonly rootTtlMs: number },
): Promise<Rotation> {
  const { directory, clock } = options;
  if ((await rotationOf(options)).step !== "none")
    throw refusal("a root is being replaced already", "`istioctl x ca rotate` says how far it is");
  const { texts, material } = await caIn(directory, clock.now());
  if (!material.certificate.isSelfSigned)
    throw refusal("this CA is signed by another one, which decides about the root", "replace the files as docs/identity.md says");
  const next = (await makeRoot({ trustDomain: options.trustDomain, now: clock.now(), ttlMs: options.rootTtlMs })).reveal();
  const chain = `${next["cert-chain.pem"]}${bridgeTo(next["ca-cert.pem"], material, options.trustDomain)}`;
  for (const name of SIGNING_FILES) await writeWholeFile(join(nextIn(directory), name), name === "cert-chain.pem" ? chain : next[name]);
  await writeWholeFile(join(directory, "root-cert.pem"), `${texts["root-cert.pem"].trimEnd()}\n${next["root-cert.pem"]}`);
  return record(directory, { step: "begun", since: clock.now(), replaces: material.certificate.pem });
}

/** Second step: the new root signs. Refused before workloads have had time to learn to trust it. */
export async function switchRoot(options: RotationOptions & { readonly waitMs: number }): Promise<Rotation> {
  const { directory, clock, waitMs } = options;
  const begun = await ready(options, "begun", waitMs);
  const texts = await textsIn(nextIn(directory), SIGNING_FILES);
  const root = texts["ca-cert.pem"];
  const bundle = await readFile(join(directory, "root-cert.pem"), "utf8");
  if (!holds(bundle, root))
    throw refusal(
      "the new root is not in root-cert.pem any more, so nobody would trust what it signs",
      "put it there again, or begin anew",
    );
  const fault = readCaMaterial({ ...texts, "root-cert.pem": bundle }, clock.now());
  if (typeof fault === "string") throw refusal(`the new root cannot sign: ${fault}`);
  for (const name of SIGNING_FILES) await writeWholeFile(join(directory, name), texts[name]);
  const done = await record(directory, { ...begun, step: "switched", since: clock.now() });
  for (const name of SIGNING_FILES) await rm(join(nextIn(directory), name), { force: true });
  return done;
}

/** Last step: the old root is trusted no more; others that were trusted beside it still are. Refused before what it signed has ended. */
export async function finishRotation(options: RotationOptions & { readonly waitMs: number }): Promise<Rotation> {
  const { directory, clock, waitMs } = options;
  const { replaces } = await ready(options, "switched", waitMs);
  const { material } = await caIn(directory, clock.now());
  const kept = replaces === undefined ? [material.certificate] : material.roots.filter(({ pem }) => !holds(replaces, pem));
  await writeWholeFile(join(directory, "root-cert.pem"), kept.map(({ pem }) => pem).join(""));
  await writeWholeFile(join(directory, "cert-chain.pem"), material.certificate.pem);
  await rm(nextIn(directory), { recursive: true, force: true });
  return NO_ROTATION;
}

/** Gives up before the new root has signed anything: it is trusted no more and forgotten. */
export async function cancelRotation(options: RotationOptions): Promise<Rotation> {
  const { directory, clock } = options;
  if ((await rotationOf(options)).step !== "begun")
    throw refusal("only a replacement that has begun, and whose new root signs nothing yet, can be cancelled");
  const next = (await textsIn(nextIn(directory), ["ca-cert.pem"]))["ca-cert.pem"];
  const { material } = await caIn(directory, clock.now());
  const kept = material.roots.filter(({ pem }) => !holds(next, pem));
  await writeWholeFile(join(directory, "root-cert.pem"), kept.map(({ pem }) => pem).join(""));
  await rm(nextIn(directory), { recursive: true, force: true });
  return NO_ROTATION;
}

function bridgeTo(next: string, old: CaMaterial, organization: string): string {
  const [certificate] = certificatesIn(next);
  if (certificate === undefined) throw refusal("the new root cannot be read");
  return makeBridge(old, certificate, organization);
}

async function ready(options: RotationOptions, step: Rotation["step"], waitMs: number): Promise<Rotation> {
  const found = await rotationOf(options);
  if (found.step !== step)
    throw refusal(
      `this step does not come next: ${found.step === "none" ? "no root is being replaced" : `the replacement is ${found.step}`}`,
    );
  const at = found.since + waitMs;
  if (options.clock.now() < at)
    throw refusal(
      `it is too early: not before ${new Date(at).toISOString()}`,
      "--after shortens the wait where you know that no workload needs it",
    );
  return found;
}

async function caIn(directory: string, now: number): Promise<{ readonly texts: CaTexts; readonly material: CaMaterial }> {
  const texts = await textsIn(directory, CA_FILES);
  const material = readCaMaterial(texts, now);
  if (typeof material === "string") throw refusal(`the CA in ${directory} cannot be used: ${material}`);
  return { texts, material };
}

async function textsIn<N extends keyof CaTexts>(directory: string, names: readonly N[]): Promise<Pick<CaTexts, N>> {
  try {
    const entries = await Promise.all(names.map(async (name) => [name, await readFile(join(directory, name), "utf8")] as const));
    return Object.fromEntries(entries) as Pick<CaTexts, N>;
  } catch (error) {
    throw refusal(`the CA in ${directory} cannot be read: ${messageOf(error)}`);
  }
}

/** Whether the first certificate of `pem` is among those of the bundle. */
const holds = (bundle: string, pem: string): boolean =>
  certificatesIn(bundle).some(({ raw }) => certificatesIn(pem)[0]?.raw.equals(raw) === true);

function certificatesIn(pem: string): readonly Certificate[] {
  const read = readCertificates(pem);
  return typeof read === "string" ? [] : read;
}

const nextIn = (directory: string): string => join(directory, "next");
const recordIn = (directory: string): string => join(nextIn(directory), "rotation.json");

async function record(directory: string, rotation: Rotation): Promise<Rotation> {
  await writeWholeFile(recordIn(directory), `${JSON.stringify(rotation)}\n`);
  return rotation;
}

function isRotation(value: unknown): value is Rotation {
  if (typeof value !== "object" || value === null) return false;
  const { step, since, replaces = "" } = value as Partial<Record<keyof Rotation, unknown>>;
  return (step === "begun" || step === "switched") && typeof since === "number" && typeof replaces === "string";
}

const refusal = (reason: string, hint?: string): EdgeError => new EdgeError("ca_unusable", reason, hint === undefined ? {} : { hint });
