import { X509Certificate } from "node:crypto";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { connect } from "node:tls";
import { status as GRPC } from "@grpc/grpc-js";
import { describe, expect, it, onTestFinished } from "vitest";
import { Fleet, reachesAll } from "../../bench/fleet.ts";
import { endpointEdit, sceneFiles, sceneProxies } from "../../bench/scene.ts";
import { tempDir } from "../support/cleanup.ts";
import { askCertificate } from "../support/identity.ts";
import { type Istiod, startIstiod } from "../support/istiod.ts";
import { createIssuer } from "../support/tokens.ts";
import { eventually } from "../support/wait.ts";

/*
 * Somebody sets the clock of the machine. The real process, with a wall clock that jumps; time as it passes stays what it is.
 */

const HOUR_MS = 3_600_000;
/** What may pass between two looks. */
const MINUTE_S = 60;
const SHAPE = { services: 10, endpoints: 2, virtualServices: 2, destinationRules: 2, namespaces: 2, proxies: 4, classes: 2 };

const issuer = createIssuer("https://id.example.com");
/** Valid for so long, by the true time. */
const tokenFor = (ms: number): string =>
  issuer.token({ aud: "istio-ca", ns: "shop", sa: "cart", exp: Math.floor((Date.now() + ms) / 1_000) });

interface Scene {
  readonly istiod: Istiod;
  readonly fleet: Fleet;
  /** Sets the clock of the process, as an offset from the true time. */
  set(shiftMs: number): Promise<void>;
}

async function startScene(): Promise<Scene> {
  const file = join(await tempDir(), "shift");
  const preload = join(import.meta.dirname, "../support/shifted-clock.ts");
  const files = sceneFiles(SHAPE);
  const trusted = `tokenIssuers: [{issuer: "${issuer.name}", jwks: '${issuer.jwks}', audiences: [istio-ca], identity: {namespace: ns, serviceAccount: sa}}]\n`;
  const istiod = await startIstiod({
    files: { ...Object.fromEntries(files), "mesh.yaml": `${files.get("mesh.yaml") ?? ""}\n${trusted}` },
    env: { NODE_OPTIONS: `--import=${preload}`, SHIFTED_CLOCK_FILE: file, ISTIO_LOG_AS_JSON: "true" },
  });
  const fleet = new Fleet(istiod.grpcPort);
  onTestFinished(() => fleet.close());
  await fleet.connect(sceneProxies(SHAPE));
  const rootLeft = (): Promise<number> => istiod.metric("citadel_server_root_cert_expiry_seconds");
  const left = await rootLeft();
  return {
    istiod,
    fleet,
    async set(shiftMs) {
      writeFileSync(file, String(shiftMs));
      process.kill(istiod.pid(), "SIGUSR2");
      await eventually("the clock is set", async () => Math.abs(left - (await rootLeft()) - shiftMs / 1_000) < MINUTE_S);
    },
  };
}

const codeOf = (asked: Promise<unknown>): Promise<number> =>
  asked.then(
    () => GRPC.OK,
    (error: { code: number }) => error.code,
  );

/** From when to when the certificate is valid that the secure port shows. */
const shownCertificate = ({ securePort }: Istiod): Promise<{ readonly from: number; readonly to: number }> =>
  new Promise((resolve, reject) => {
    const socket = connect({ port: securePort, host: "127.0.0.1", rejectUnauthorized: false, ALPNProtocols: ["h2"] }, () => {
      const { valid_from, valid_to } = socket.getPeerCertificate();
      socket.destroy();
      resolve({ from: Date.parse(valid_from), to: Date.parse(valid_to) });
    }).on("error", reject);
  });

async function showsValidCertificate(istiod: Istiod, shiftMs: number): Promise<void> {
  await eventually("the control plane's own certificate is valid by the new time", async () => {
    const { from, to } = await shownCertificate(istiod);
    const now = Date.now() + shiftMs;
    return from <= now && now < to;
  });
}

describe("a clock that is set while the control plane runs", () => {
  it("cuts no proxy, delays no change, and certificates and tokens are judged by the new time", async () => {
    const { istiod, fleet, set } = await startScene();
    const known = tokenFor(HOUR_MS / 2);
    expect(await codeOf(askCertificate(istiod, { token: known }))).toBe(GRPC.OK);
    let step = 0;
    for (const shift of [HOUR_MS, -HOUR_MS, 0]) {
      await set(shift);
      step += 1;
      const edit = endpointEdit(step);
      const { touched } = await fleet.observe(() => istiod.write(edit.file, edit.text), reachesAll(edit));
      expect(touched).toBe(SHAPE.proxies);
      const { chain } = await askCertificate(istiod, { token: tokenFor(2 * HOUR_MS) });
      const leaf = new X509Certificate(chain[0] ?? "");
      const now = Date.now() + shift;
      expect(leaf.validFromDate.getTime()).toBeLessThanOrEqual(now);
      expect(leaf.validToDate.getTime()).toBeGreaterThan(now + HOUR_MS);
      for (const token of [tokenFor(HOUR_MS / 2), known])
        expect(await codeOf(askCertificate(istiod, { token }))).toBe(shift > 0 ? GRPC.UNAUTHENTICATED : GRPC.OK);
    }
    expect(await istiod.metric("pilot_xds")).toBe(SHAPE.proxies);
    expect((await fetch(`http://127.0.0.1:${istiod.httpPort}/ready`)).status).toBe(200);
  });

  it("lets it show a certificate that is valid by the new time, without a restart, and takes those it gave out as long as they are", async () => {
    const { istiod, fleet, set } = await startScene();
    const own = await askCertificate(istiod, { token: tokenFor(HOUR_MS) });
    const pidBefore = istiod.pid();
    for (const shift of [30 * HOUR_MS, 0, -2 * HOUR_MS, 0]) {
      await set(shift);
      await showsValidCertificate(istiod, shift);
    }
    expect(await codeOf(askCertificate(istiod, { certificate: own }))).toBe(GRPC.OK);
    const edit = endpointEdit(9);
    const { touched } = await fleet.observe(() => istiod.write(edit.file, edit.text), reachesAll(edit));
    expect([touched, istiod.pid()]).toEqual([SHAPE.proxies, pidBefore]);
  });
});
