import { readFileSync } from "node:fs";
import { parseArgs } from "node:util";
import { systemClock } from "../src/base/clock.ts";
import { CREATE_CERTIFICATE } from "../src/ca/certificate-service.ts";
import { buildCsr } from "../src/pki/csr.ts";
import { generateKeys } from "../src/pki/keys.ts";
import { numberField, textField } from "../src/wire/field-writer.ts";
import { openGrpcChannel } from "../src/wire/grpc-channel.ts";

/*
 * Asks a control plane for certificates for so many seconds, on so many connections at once, and tells its parent how long each took. A process of its own: what
 * else the bench does would otherwise be measured with it.
 */

const CSRS_EACH = 64;
const DAY_S = 86_400;
const TIMEOUT_MS = 60_000;

const { values } = parseArgs({
  options: {
    port: { type: "string", default: "" },
    roots: { type: "string", default: "" },
    token: { type: "string", default: "" },
    clients: { type: "string", default: "4" },
    seconds: { type: "string", default: "1" },
  },
});

const tls = { roots: readFileSync(values.roots, "utf8"), serverName: "istiod.istio-system.svc" };
const to = { host: "127.0.0.1", port: Number(values.port) };
const headers = { authorization: `Bearer ${values.token}` };

async function csrs(): Promise<readonly Buffer[]> {
  const made: Buffer[] = [];
  for (let index = 0; index < CSRS_EACH; index++) {
    const csr = buildCsr(await generateKeys("P-256"), "spiffe://cluster.local/ns/x/sa/x");
    made.push(Buffer.concat([textField(1, csr), numberField(3, DAY_S)]));
  }
  return made;
}

async function client(requests: readonly Buffer[], until: number): Promise<readonly number[]> {
  const channel = await openGrpcChannel({ to, tls, clock: systemClock });
  const times: number[] = [];
  for (let index = 0; systemClock.monotonic() < until; index++) {
    const start = systemClock.monotonic();
    await channel.unary(CREATE_CERTIFICATE, requests[index % requests.length] ?? Buffer.alloc(0), { headers, timeoutMs: TIMEOUT_MS });
    times.push(systemClock.monotonic() - start);
  }
  channel.close();
  return times;
}

const pools = await Promise.all(Array.from({ length: Number(values.clients) }, csrs));
process.send?.("ready");
await new Promise((resolve) => process.once("message", resolve));
const until = systemClock.monotonic() + Number(values.seconds) * 1_000;
const times = (await Promise.all(pools.map((pool) => client(pool, until)))).flat();
// Only when it has been taken: of a long message cut off the parent would hear nothing.
process.send?.(times, () => process.disconnect?.());
