import assert from "node:assert/strict";
import { createSocket } from "node:dgram";
import { Resolver } from "node:dns/promises";
import { connect } from "node:net";
import { describe, it, onTestFinished } from "vitest";
import { freePort } from "../../../test/support/ports.ts";
import { eventually } from "../../../test/support/wait.ts";
import { systemClock } from "../../base/clock.ts";
import { silentLog } from "../../base/log.ts";
import { type DnsRecord, RCODE, readHeader, readQuery, writeAnswer, writeQuery } from "./dns-message.ts";
import { startDnsServer } from "./dns-server.ts";
import { buildLookup, type NameInfo, type NameLookup } from "./name-table.ts";
import { createResolver, type DnsCounts } from "./resolver.ts";
import { FrameReader, frame } from "./tcp-frames.ts";
import { createUpstream, type DnsTransport, type UpstreamServer } from "./upstream.ts";

const entry = (host: string, ...ips: string[]): NameInfo => ({
  host,
  ips,
  registry: "External",
  shortname: "",
  namespace: "",
  altHosts: [],
});
const MESH = buildLookup(
  [
    entry("web.mesh", "10.0.0.1"),
    entry("six.mesh", "fd00::1"),
    entry("pods.mesh", ...Array.from({ length: 3 }, (_, i) => `10.0.1.${i}`)),
    entry("many.mesh", ...Array.from({ length: 60 }, (_, i) => `10.0.2.${i}`)),
    entry("*.wild.mesh", "10.0.3.1"),
  ],
  { namespace: "shop", domain: "svc.cluster.local", search: "corp.example" },
);

/** A server of the machine: knows names below `outside` only, has too many addresses for UDP for one of them, and says nothing for another. */
async function outside(): Promise<UpstreamServer & { readonly seen: string[] }> {
  const seen: string[] = [];
  const server = await startDnsServer({
    addresses: ["127.0.0.1"],
    port: await freePort(),
    log: silentLog,
    async resolve(message, transport) {
      const query = readQuery(message);
      if (query === undefined) return undefined;
      seen.push(`${transport} ${query.question.name} ${query.question.type}`);
      if (query.question.name.startsWith("silent")) return undefined;
      const known = query.question.name.endsWith(".outside") && query.question.type === 1;
      const count = !known ? 0 : query.question.name.startsWith("large") ? 100 : 1;
      const records: DnsRecord[] = Array.from({ length: count }, (_, i) => ({
        type: "A",
        name: query.question.name,
        ttl: 5,
        address: Uint8Array.of(192, 0, 2, i),
      }));
      const answer = { rcode: known ? RCODE.NOERROR : RCODE.NXDOMAIN, authoritative: false, records };
      return writeAnswer(query, answer, transport === "udp" ? 512 : 65_535);
    },
  });
  onTestFinished(() => server.close());
  return { address: "127.0.0.1", port: server.port, seen };
}

/** One that serves no name, and says so. */
async function unhelpful(rcode: number): Promise<UpstreamServer> {
  const server = await startDnsServer({
    addresses: ["127.0.0.1"],
    port: await freePort(),
    log: silentLog,
    async resolve(message) {
      const query = readQuery(message);
      return query && writeAnswer(query, { rcode, authoritative: false, records: [] }, 512);
    },
  });
  onTestFinished(() => server.close());
  return { address: "127.0.0.1", port: server.port };
}

interface Setup {
  readonly servers?: readonly UpstreamServer[];
  readonly lookup?: NameLookup | "not yet";
  readonly atMost?: number;
  readonly parallel?: boolean;
  readonly random?: () => number;
}

async function start({
  servers = [],
  lookup = MESH,
  atMost = 8,
  parallel = false,
  random = () => 0,
}: Setup = {}): Promise<{ client: Resolver; port: number; counts: DnsCounts }> {
  const counts: DnsCounts = { requests: 0, forwarded: 0, failed: 0 };
  const upstream = createUpstream({ servers: async () => servers, clock: systemClock, timeoutMs: 5_000, parallel, atMost });
  const names = lookup === "not yet" ? undefined : lookup;
  const server = await startDnsServer({
    addresses: ["127.0.0.1", "::1"],
    port: await freePort(),
    log: silentLog,
    resolve: createResolver({ lookup: () => names, upstream, counts, random }),
  });
  onTestFinished(() => server.close());
  return { client: clientOf(`127.0.0.1:${server.port}`), port: server.port, counts };
}

function clientOf(server: string): Resolver {
  const client = new Resolver({ timeout: 30_000, tries: 1 });
  client.setServers([server]);
  return client;
}

const codeOf = (asked: Promise<unknown>): Promise<string> =>
  asked.then(
    () => "answered",
    (error: { code?: string }) => error.code ?? String(error),
  );

/** Asks over TCP, several questions on one connection. */
function askOverTcp(port: number, names: readonly string[], expected = names.length): Promise<readonly Buffer[]> {
  return new Promise((resolve, reject) => {
    const frames = new FrameReader();
    const answers: Buffer[] = [];
    const queries = names.map((name, id) =>
      frame(writeQuery({ id, opcode: 0, recursionDesired: true, question: { name, type: 1, class: 1 }, udpSize: undefined })),
    );
    const socket = connect(port, "127.0.0.1", () => socket.write(Buffer.concat(queries)));
    socket.on("error", reject).on("data", (bytes) => {
      answers.push(...frames.push(bytes));
      if (answers.length < expected) return;
      socket.destroy();
      resolve(answers);
    });
    socket.on("close", () => resolve(answers));
  });
}

describe("the agent's DNS server", () => {
  it("knows names of the mesh, those below an asterisk, and no addresses of a family they do not have", async () => {
    const { client, port } = await start();
    assert.deepEqual(await client.resolve4("web.mesh"), ["10.0.0.1"]);
    assert.deepEqual(await client.resolve4("any.thing.wild.mesh"), ["10.0.3.1"]);
    assert.deepEqual(await client.resolve6("six.mesh"), ["fd00::1"]);
    assert.equal(await codeOf(client.resolve6("web.mesh")), "ENODATA");
    assert.deepEqual(await client.resolve4("web.mesh", { ttl: true }), [{ address: "10.0.0.1", ttl: 30 }]);
    assert.deepEqual(await clientOf(`[::1]:${port}`).resolve4("web.mesh"), ["10.0.0.1"]);
  });

  it("follows the search domain with an alias and its addresses in one answer", async () => {
    const { client } = await start();
    assert.deepEqual(await client.resolve4("web.mesh.corp.example"), ["10.0.0.1"]);
  });

  it("gives another address first each time", async () => {
    let turn = 0;
    const { client } = await start({ random: () => (turn++ % 3) / 3 });
    const firsts = new Set<string | undefined>();
    for (let i = 0; i < 3; i++) {
      const all = await client.resolve4("pods.mesh");
      assert.equal(all.length, 3);
      firsts.add(all[0]);
    }
    assert.equal(firsts.size, 3);
  });

  it("cuts an answer that is too long for UDP, and gives it whole over TCP", async () => {
    const { client, port } = await start();
    assert.equal((await client.resolve4("many.mesh")).length, 60);
    const socket = createSocket("udp4");
    onTestFinished(() => void socket.close());
    const answer = await new Promise<Buffer>((resolve) => {
      socket.once("message", resolve);
      socket.send(
        writeQuery({ id: 1, opcode: 0, recursionDesired: true, question: { name: "many.mesh", type: 1, class: 1 }, udpSize: undefined }),
        port,
        "127.0.0.1",
      );
    });
    assert.ok(answer.length <= 512);
    assert.equal(readHeader(answer)?.truncated, true);
  });

  it("asks the machine's servers for everything else, over TCP where the answer is long", async () => {
    const server = await outside();
    const { client, counts } = await start({ servers: [server] });
    assert.deepEqual(await client.resolve4("www.outside"), ["192.0.2.0"]);
    assert.equal((await client.resolve4("large.outside")).length, 100);
    assert.deepEqual(server.seen, ["udp www.outside 1", "udp large.outside 1", "tcp large.outside 1"]);
    assert.equal(await codeOf(client.resolve4("nobody.nowhere")), "ENOTFOUND");
    assert.deepEqual(counts, { requests: 4, forwarded: 4, failed: 0 });
  });

  it("asks a server over UDP that takes no TCP, and cuts what is more than its client can take", async () => {
    const server = createSocket("udp4");
    await new Promise<void>((resolve) => server.bind(0, "127.0.0.1", () => resolve()));
    onTestFinished(() => void server.close());
    server.on("message", (bytes, from) => {
      const query = readQuery(bytes);
      assert.ok(query !== undefined);
      const { name } = query.question;
      const records = Array.from({ length: 60 }, (_, i): DnsRecord => ({ type: "A", name, ttl: 5, address: Uint8Array.of(192, 0, 2, i) }));
      server.send(writeAnswer(query, { rcode: RCODE.NOERROR, authoritative: false, records }, 65_535), from.port, from.address);
    });
    const { client, port } = await start({ servers: [{ address: "127.0.0.1", port: server.address().port }] });
    const [long] = await askOverTcp(port, ["long.outside"]);
    assert.ok(long !== undefined && long.length > 512 && readHeader(long)?.truncated === false);
    // Over UDP first, where it is told to come again over TCP.
    assert.equal((await client.resolve4("long.outside")).length, 60);
    const asked = createSocket("udp4");
    onTestFinished(() => void asked.close());
    const question = { name: "long.outside", type: 1, class: 1 };
    const cut = await new Promise<Buffer>((resolve) => {
      asked.once("message", resolve);
      asked.send(writeQuery({ id: 7, opcode: 0, recursionDesired: true, question, udpSize: undefined }), port, "127.0.0.1");
    });
    assert.ok(cut.length <= 512 && readHeader(cut)?.truncated === true);
  });

  it("does not let a server say that a name of the mesh is not there", async () => {
    const { client } = await start({ servers: [await outside()] });
    assert.equal(await codeOf(client.resolveTxt("web.mesh")), "ENODATA");
    assert.equal(await codeOf(client.resolveTxt("nobody.nowhere")), "ENOTFOUND");
  });

  it("until it knows the names of the mesh, gives what others know and calls nothing missing", async () => {
    const { client } = await start({ servers: [await outside()], lookup: "not yet" });
    assert.deepEqual(await client.resolve4("www.outside"), ["192.0.2.0"]);
    assert.equal(await codeOf(client.resolve4("web.mesh")), "ESERVFAIL");
  });

  it("asks the next server where one is silent or gone, and that one first from then on", async () => {
    const silent = createSocket("udp4");
    await new Promise<void>((resolve) => silent.bind(0, "127.0.0.1", () => resolve()));
    onTestFinished(() => void silent.close());
    let heard = 0;
    silent.on("message", () => heard++);
    const good = await outside();
    const gone = { address: "127.0.0.2", port: await freePort() };
    const { client } = await start({ servers: [{ address: "127.0.0.3", port: silent.address().port }, gone, good] });
    for (let i = 0; i < 3; i++) assert.deepEqual(await client.resolve4("www.outside"), ["192.0.2.0"]);
    assert.ok(heard <= 1);
    assert.equal(good.seen.length, 3);
  });

  it.each([false, true])(
    "asks the next server where one refuses or fails (all at once: %s), and passes that on where none does better",
    async (parallel) => {
      const [refusing, failing, good] = [await unhelpful(RCODE.REFUSED), await unhelpful(RCODE.SERVFAIL), await outside()];
      const { client } = await start({ servers: [refusing, failing, good], parallel });
      for (let i = 0; i < 2; i++) assert.deepEqual(await client.resolve4("www.outside"), ["192.0.2.0"]);
      assert.equal(await codeOf(client.resolve4("nobody.nowhere")), "ENOTFOUND");
      const none = await start({ servers: [refusing, failing], parallel });
      assert.match(String(await codeOf(none.client.resolve4("www.outside"))), parallel ? /EREFUSED|ESERVFAIL/ : /EREFUSED/);
      assert.equal(none.counts.failed, 0);
    },
  );

  it("asks all servers at once where that is wanted, and takes the first answer", async () => {
    const [one, two] = [await outside(), await outside()];
    const nobody = { address: "127.0.0.1", port: await freePort() };
    const { client } = await start({ servers: [nobody, one, two], parallel: true });
    assert.deepEqual(await client.resolve4("www.outside"), ["192.0.2.0"]);
    await eventually("both were asked", async () => one.seen.length + two.seen.length === 2);
    const none = await start({ servers: [nobody], parallel: true });
    assert.equal(await codeOf(none.client.resolve4("www.outside")), "ESERVFAIL");
  });

  it("says that it failed where no server answers, and where too many questions are under way", async () => {
    const nobody = { address: "127.0.0.1", port: await freePort() };
    const { client, counts } = await start({ servers: [nobody] });
    assert.equal(await codeOf(client.resolve4("www.outside")), "ESERVFAIL");
    assert.equal(counts.failed, 1);
    const full = await start({ servers: [await outside()], atMost: 0 });
    assert.equal(await codeOf(full.client.resolve4("www.outside")), "ESERVFAIL");
    assert.deepEqual(await full.client.resolve4("web.mesh"), ["10.0.0.1"]);
  });

  it("answers several questions on one connection, and drops one who asks without end", async () => {
    const { port } = await start();
    const answers = await askOverTcp(port, ["web.mesh", "pods.mesh", "any.wild.mesh"]);
    assert.deepEqual(answers.map((answer) => readHeader(answer)?.id).sort(), [0, 1, 2]);
    const silent = await start({ servers: [await outside()] });
    const dropped = await askOverTcp(
      silent.port,
      Array.from({ length: 200 }, (_, i) => `silent${i}.outside`),
      201,
    );
    assert.ok(dropped.length < 200);
  });

  it("refuses what is no question, and goes on", async () => {
    const { client, port } = await start();
    const socket = createSocket("udp4");
    onTestFinished(() => void socket.close());
    const send = (bytes: Uint8Array): void => socket.send(bytes, port, "127.0.0.1");
    const rcodes = new Map<number | undefined, number | undefined>();
    socket.on("message", (bytes) => rcodes.set(readHeader(bytes)?.id, readHeader(bytes)?.rcode));
    const ask = (id: number, name: string, opcode = 0): Buffer =>
      writeQuery({ id, opcode, recursionDesired: false, question: { name, type: 1, class: 1 }, udpSize: undefined });
    for (const bytes of [Buffer.alloc(3), Buffer.alloc(12), Buffer.alloc(12, 0xff), ask(5, "x", 2), ask(6, "web.mesh")]) send(bytes);
    // What was sent before the last question has been read when that is answered.
    await eventually("the question is answered", () => rcodes.has(6));
    assert.deepEqual(
      rcodes,
      new Map([
        [0, RCODE.FORMERR],
        [5, RCODE.NOTIMP],
        [6, RCODE.NOERROR],
      ]),
    );
    assert.deepEqual(await client.resolve4("web.mesh"), ["10.0.0.1"]);
  });

  it("takes only the right server's answer to the right question", async () => {
    const liar = createSocket("udp4");
    await new Promise<void>((resolve) => liar.bind(0, "127.0.0.1", () => resolve()));
    onTestFinished(() => void liar.close());
    const respond = (bytes: Buffer, id: number, name: string): Buffer => {
      const query = readQuery(bytes);
      assert.ok(query !== undefined);
      const address = Uint8Array.of(6, 6, 6, 6);
      return writeAnswer(
        { ...query, id, question: { ...query.question, name } },
        { rcode: 0, authoritative: true, records: [{ type: "A", name, ttl: 1, address }] },
        512,
      );
    };
    liar.on("message", (bytes, from) => {
      liar.send(respond(bytes, (bytes.readUInt16BE(0) + 1) & 0xffff, "www.outside"), from.port, from.address);
      liar.send(respond(bytes, bytes.readUInt16BE(0), "other.outside"), from.port, from.address);
    });
    const transport: DnsTransport = "udp";
    const upstream = createUpstream({
      servers: async () => [{ address: "127.0.0.1", port: liar.address().port }],
      clock: systemClock,
      timeoutMs: 100,
      parallel: false,
      atMost: 1,
    });
    const query = writeQuery({
      id: 1,
      opcode: 0,
      recursionDesired: true,
      question: { name: "www.outside", type: 1, class: 1 },
      udpSize: undefined,
    });
    assert.equal(await upstream.ask(query, transport), undefined);
  });
});
