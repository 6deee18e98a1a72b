import { readFile, statfs } from "node:fs/promises";
import { dirname, join } from "node:path";
import { EdgeError, messageOf } from "../../base/errors.ts";
import { isOn } from "../../base/go-bool.ts";
import { readCertificates } from "../../pki/certificate.ts";
import { agentEnvoy, ENVOY_VERSION } from "../find-envoy.ts";
import { CERTIFICATE_FILES, readEarlierCertificate } from "../identity/certificate-copies.ts";
import { findIptables } from "../iptables/find-iptables.ts";
import { findTrustRoots } from "../trust-roots.ts";
import { unreadableFile } from "../unreadable-file.ts";
import { readWorkloadToken, unreadableToken, unusableToken } from "../workload-token.ts";
import type { Examination, Finding, Patient } from "./finding.ts";

const AUDIENCE = "istio-ca";
const TOKEN_FILE = "var/run/secrets/tokens/istio-token";
/** Certificates and tokens are made to be valid this long before; a larger difference breaks them. */
const CLOCK_DIFFERENCE_MS = 60_000;

/** What OpenSSL says of a certificate that is valid, but not now. */
const AT_ANOTHER_TIME = /CERT_HAS_EXPIRED|CERT_NOT_YET_VALID/;

/** Everything that is looked at, in the order in which one would look oneself: what is wrong first is often why the rest is. */
export const EXAMINATIONS: readonly Examination[] = [
  clockIsRight,
  tokenIsGood,
  rootsAreThere,
  serversAnswer,
  diskHasRoom,
  envoyFits,
  interceptionIsSetUp,
];

/** A token or a certificate of before that the control plane takes. */
async function tokenIsGood(patient: Patient): Promise<Finding> {
  const looks = await tokenLooksGood(patient);
  const refusing = patient.servers.find(({ refuses }) => refuses !== undefined);
  if (looks.fix !== undefined || refusing === undefined) return looks;
  const says = `${refusing.address} refuses what this machine shows: ${refusing.refuses ?? ""}`;
  return { about: looks.about, says, fix: tokenFix(patient) };
}

const tokenFix = ({ config }: Patient): string =>
  `put a token for audience ${AUDIENCE} into ${config.baseDir}/${TOKEN_FILE} (istioctl x workload token makes one)`;

async function tokenLooksGood(patient: Patient): Promise<Finding> {
  const { config, clock } = patient;
  const about = "token";
  if (![...config.discovery, ...config.ca].some(({ tls }) => tls)) return { about, says: notNeeded(config), skipped: true };
  const fix = tokenFix(patient);
  const { certificates } = config.paths;
  const earlier = certificates === undefined ? undefined : await readEarlierCertificate(certificates, clock);
  const bad = (says: string): Finding =>
    earlier === undefined ? { about, says, fix } : { about, says: `${says}, but the certificate of before is still valid and is enough` };
  const token = await readWorkloadToken(config.baseDir);
  if (token === undefined) {
    const hidden = (await unreadableToken(config.baseDir)) ?? (earlier === undefined ? await unreadableCopy(certificates) : undefined);
    const ended = await endOfCopy(certificates, clock.now());
    const unusable = await unusableToken(config.baseDir);
    if (unusable !== undefined) return bad(unusable);
    const owned = bad(hidden ?? `there is none${ended === undefined ? "" : `, and the certificate of before ended at ${timeText(ended)}`}`);
    return hidden === undefined || owned.fix === undefined
      ? owned
      : { ...owned, fix: "make the file belong to the user that the agent runs as" };
  }
  const claims = claimsOf(token.reveal());
  if (claims === undefined) return bad("what is in the file is no token");
  if (typeof claims.exp === "number" && claims.exp * 1_000 <= clock.now()) return bad(`it ended at ${timeText(claims.exp * 1_000)}`);
  if (![claims.aud].flat().includes(AUDIENCE)) return bad(`it is not for audience ${AUDIENCE}`);
  return {
    about,
    says: `for audience ${AUDIENCE}${typeof claims.exp === "number" ? `, valid until ${timeText(claims.exp * 1_000)}` : ""}`,
  };
}

/** A certificate of before that is not this user's to read: of an agent that was run as root once. */
const unreadableCopy = (directory: string | undefined): Promise<string | undefined> =>
  unreadableFile(directory === undefined ? [] : [CERTIFICATE_FILES.key, CERTIFICATE_FILES.chain].map((name) => join(directory, name)));

/** When a certificate of before ended: of a machine that was off for longer than it lived. */
const endOfCopy = async (directory: string | undefined, now: number): Promise<number | undefined> => {
  if (directory === undefined) return undefined;
  const copies = readCertificates(await readFile(join(directory, CERTIFICATE_FILES.chain), "utf8").catch(() => ""));
  const end = typeof copies === "string" ? undefined : copies[0]?.notAfter;
  return end !== undefined && end <= now ? end : undefined;
};

/** The clocks of others are seen in what they sign and send. */
async function clockIsRight({ config, clock, servers }: Patient): Promise<Finding> {
  const about = "clock";
  const fix = "synchronize the machine's clock (chronyd, systemd-timesyncd or ntpd)";
  const now = clock.now();
  for (const { address, time } of servers) {
    if (time === undefined) continue;
    const difference = now - time;
    const text = `${Math.round(Math.abs(difference) / 1_000)} s ${difference < 0 ? "behind" : "ahead of"} ${address}`;
    if (Math.abs(difference) > CLOCK_DIFFERENCE_MS) return { about, says: `it is ${text}`, fix };
  }
  const token = await readWorkloadToken(config.baseDir);
  const { iat, nbf } = (token === undefined ? undefined : claimsOf(token.reveal())) ?? {};
  const issued = Math.max(...[iat, nbf].map((claim) => (typeof claim === "number" ? claim * 1_000 : 0)));
  if (issued > now + CLOCK_DIFFERENCE_MS) return { about, says: `it is behind: the token was made at ${timeText(issued)}`, fix };
  for (const { address, validFrom } of servers)
    if (validFrom !== undefined && validFrom > now)
      return { about, says: `it is behind: the certificate of ${address} begins at ${timeText(validFrom)}`, fix };
  return {
    about,
    says: servers.some(({ time }) => time !== undefined) ? "it agrees with the control plane's" : "nothing speaks against it",
  };
}

const notNeeded = ({ discovery }: Patient["config"]): string =>
  discovery.length === 0 ? "not needed, no control plane is called" : "not needed, the control plane is called in plaintext";

async function rootsAreThere({ config, clock }: Patient): Promise<Finding> {
  const about = "roots";
  const target = [...config.discovery, ...config.ca].find(({ tls }) => tls);
  if (target === undefined) return { about, says: notNeeded(config), skipped: true };
  try {
    const { pem, from } = await findTrustRoots({ baseDir: config.baseDir, named: config.settings.xdsRoots, target, learned: "" });
    if (pem === undefined) return { about, says: `those of ${from} are used` };
    const certificates = readCertificates(pem);
    const fix = `put the root of the mesh into ${from} (root-cert.pem of the control plane's etc/cacerts)`;
    if (typeof certificates === "string") return { about, says: `${from} cannot be read: ${certificates}`, fix };
    const valid = certificates.filter(({ notAfter }) => notAfter > clock.now());
    if (valid.length === 0) return { about, says: `all certificates in ${from} have ended`, fix };
    return { about, says: `${valid.length} in ${from}` };
  } catch (error) {
    return { about, says: messageOf(error), fix: (error instanceof EdgeError && error.hint) || "name a readable file in XDS_ROOT_CA" };
  }
}

async function serversAnswer({ servers, config }: Patient): Promise<Finding> {
  const about = "istiod";
  if (servers.length === 0) return { about, says: "there is no address; the agent would be a control plane of its own", skipped: true };
  const gone = servers.find(({ unreachable }) => unreachable !== undefined);
  if (gone !== undefined)
    return {
      about,
      says: `${gone.address} does not answer: ${gone.unreachable ?? ""}`,
      fix: "check ISTIO_ADDRESS (PILOT_ADDRESS, CA_ADDR), the name server, and that no firewall is in between",
    };
  const strange = servers.find(({ unverified }) => unverified !== undefined);
  if (strange !== undefined)
    return {
      about,
      says: `${strange.address} cannot be verified as ${strange.target.serverName}: ${strange.unverified ?? ""}`,
      fix: AT_ANOTHER_TIME.test(strange.unverified ?? "")
        ? "set this machine's clock; if it is right, renew the certificate of that control plane"
        : `take the root of that control plane into ${config.baseDir}/etc/certs/root-cert.pem (or XDS_ROOT_CA, CA_ROOT_CA), or set ISTIOD_SAN to the name its certificate is for`,
    };
  return { about, says: `${servers.map(({ address }) => address).join(", ")} ${servers.length === 1 ? "answers" : "answer"}` };
}

/** What the agent writes is small: Envoy's bootstrap, the certificate, what Envoy accepted last. */
const LEAST_ROOM_BYTES = 1024 * 1024;

/** Where it writes; these may be on disks of their own. */
const WRITTEN = ["", "etc/certs", "etc/istio/proxy", "var/lib/istio/envoy"];

async function diskHasRoom({ config: { baseDir } }: Patient): Promise<Finding> {
  const about = "disk";
  for (const directory of WRITTEN.map((name) => join(baseDir, name))) {
    const room = await statfs(directory).catch(() => undefined);
    if (room !== undefined && room.bavail * room.bsize < LEAST_ROOM_BYTES)
      return { about, says: `there is no room left in ${directory}: what is to be kept there cannot be`, fix: "make room on that disk" };
  }
  return { about, says: `there is room in ${baseDir}` };
}

async function envoyFits({ config, run }: Patient): Promise<Finding> {
  const about = "Envoy";
  if (config.settings.disableEnvoy) return { about, says: "not needed (DISABLE_ENVOY)", skipped: true };
  const fix = `install Envoy ${ENVOY_VERSION} and name it in ENVOY_PATH`;
  let binary: string;
  try {
    binary = agentEnvoy(config);
  } catch (error) {
    return { about, says: messageOf(error), fix: (error instanceof EdgeError && error.hint) || fix };
  }
  const { status, stdout, stderr } = await run(binary, ["--version"]);
  const [, version, minor] = /version: [0-9a-f]+\/((?:\d+)\.(\d+)\.\d+)/.exec(stdout) ?? [];
  if (status !== 0 || version === undefined)
    return { about, says: `${binary} does not run: ${(stderr || stdout).trim().split("\n")[0] ?? ""}`, fix };
  const tested = Number(ENVOY_VERSION.split(".")[1]);
  if (Number(minor) < tested)
    return { about, says: `${binary} is ${version}, older than ${ENVOY_VERSION}, whose configuration it would refuse`, fix };
  return { about, says: `${binary} is ${version}${version === ENVOY_VERSION ? "" : `; ${ENVOY_VERSION} is what is tested`}` };
}

async function interceptionIsSetUp({ config, run }: Patient): Promise<Finding> {
  const about = "iptables";
  const mode = config.env.ISTIO_META_INTERCEPTION_MODE || config.proxy.interceptionMode || "REDIRECT";
  if (mode === "NONE" || config.type !== "sidecar") return { about, says: "not needed, nothing is intercepted", skipped: true };
  const found = await findIptables(run, 4);
  if (typeof found === "string") {
    if (/permission|root|not permitted/i.test(found)) return { about, says: "only root can see the rules", skipped: true };
    return { about, says: found, fix: "install the package iptables, or set interceptionMode NONE if nothing is to be intercepted" };
  }
  const command = `run "istio-agent iptables${mode === "TPROXY" ? " -m TPROXY" : ""}" as root before the workload starts`;
  const nat = found.inForce.find(({ table }) => table === "nat");
  if (nat === undefined || !nat.jumps.some((jump) => jump.startsWith("OUTPUT")))
    return { about, says: "no rules are in force: nothing goes through Envoy", fix: command };
  if (isOn(config.env.ISTIO_META_DNS_CAPTURE ?? "") && !nat.chains.has("ISTIO_OUTPUT_DNS"))
    return { about, says: "names are to be asked from the agent, but no rule leads there", fix: command };
  return { about, says: `rules are in force (${dirname(found.restore) === "." ? found.restore : found.restore.replace(/^.*\//, "")})` };
}

type Claims = Readonly<Record<string, unknown>>;

/** Claims of a token, unverified: only what it says of itself. */
function claimsOf(token: string): Claims | undefined {
  const [, payload, signature] = token.split(".");
  if (payload === undefined || signature === undefined) return undefined;
  try {
    const claims: unknown = JSON.parse(Buffer.from(payload, "base64url").toString("utf8"));
    return typeof claims === "object" && claims !== null ? (claims as Claims) : undefined;
  } catch {
    return undefined;
  }
}

const timeText = (ms: number): string => new Date(ms).toISOString();
