import { mkdtemp, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import fc from "fast-check";
import { describe, expect, it, onTestFinished } from "vitest";
import { holds } from "../../../test/support/holds.ts";
import { manualClock } from "../../../test/support/manual-clock.ts";
import { silentLog } from "../../base/log.ts";
import type { SourceEvent } from "../../config/object.ts";
import { readObject } from "../../config/read-object.ts";
import { RegisteredWorkloads, type RegistrationEvent } from "./registered-workloads.ts";
import { type Claim, type GroupTemplate, registrationName } from "./registration.ts";
import type { EntryDocument, EntryPlace } from "./registration-board.ts";
import { type RegistrationStore, registrationFile } from "./registration-file.ts";

const GROUP: GroupTemplate = {
  labels: { app: "cart", tier: "back" },
  annotations: { note: "x" },
  ports: { http: 8080 },
  serviceAccount: "cart",
  network: "",
  locality: "r1/z1",
  weight: 3,
};
const CLAIM: Claim = {
  namespace: "shop",
  group: "carts",
  serviceAccount: "cart",
  address: "10.0.0.7",
  labels: { tier: "front", "istio-locality": "r9.z9" },
  network: "",
  locality: "",
  healthChecked: false,
};
const KEY = "WorkloadEntry/shop/carts-10.0.0.7";

function memory(): RegistrationStore & { text: string } {
  const kept = { text: "[]" };
  return Object.assign(kept, {
    load: async () => JSON.parse(kept.text),
    save: (all: () => readonly unknown[]) => {
      kept.text = JSON.stringify(all());
    },
    flush: async () => {},
  });
}

async function rig(store: RegistrationStore = memory(), clock = manualClock()) {
  const groups = new Map<string, GroupTemplate>([["shop/carts", GROUP]]);
  const noted: RegistrationEvent[] = [];
  const posted: (readonly [place: EntryPlace, entry: EntryDocument | undefined])[] = [];
  const elsewhere = new Map<string, string>();
  const book = new RegisteredWorkloads({
    board: { post: (place, entry) => void posted.push([place, entry]), report: () => {} },
    isElsewhere: (key) => elsewhere.has(key),
    accountOf: (key) => elsewhere.get(key),
    group: (namespace, name) => groups.get(`${namespace}/${name}`),
    store,
    graceMs: 10_000,
    controller: "istiod-1",
    clock,
    log: silentLog,
    note: (event) => noted.push(event),
  });
  await book.restore();
  const abort = new AbortController();
  onTestFinished(() => abort.abort());
  const entries = new Map<string, unknown>();
  const said: SourceEvent[] = [];
  void (async () => {
    for await (const event of book.events(abort.signal)) {
      said.push(event);
      if (event.type === "reset") for await (const raw of event.objects) entries.set(raw.scope ?? "", raw.content);
      else
        for (const { scope, objects } of event.scopes) {
          if (objects[0] === undefined) entries.delete(scope);
          else entries.set(scope, objects[0].content);
        }
    }
  })();
  const settled = () => new Promise((resolve) => setImmediate(resolve));
  await settled();
  return { posted, elsewhere, book, clock, groups, noted, entries, said, settled };
}

describe("a workload that names its group when it connects", () => {
  it("gets a valid WorkloadEntry from the group's template and what it says of itself", async () => {
    const { book, entries, settled, noted } = await rig();
    book.connect({}, CLAIM);
    await settled();
    expect(entries.get(KEY)).toMatchObject({
      metadata: {
        labels: { app: "cart", tier: "front" },
        annotations: { note: "x", "istio.io/autoRegistrationGroup": "carts", "istio.io/workloadController": "istiod-1" },
      },
      spec: { address: "10.0.0.7", ports: { http: 8080 }, serviceAccount: "cart", locality: "r1/z1", weight: 3 },
    });
    const read = readObject({ origin: { source: "test" }, slot: "1", content: entries.get(KEY) });
    expect(read).toMatchObject({ problems: [], object: { kind: "WorkloadEntry", namespace: "shop", name: "carts-10.0.0.7" } });
    expect(noted).toEqual(["registered"]);
  });

  it("is named as Istio names it", () => {
    const name = (claim: Partial<Claim>): string => registrationName({ ...CLAIM, ...claim });
    expect(name({ address: "2001:db8::1", network: "n1" })).toBe("carts-2001-db8--1-n1");
    expect(name({ group: "g".repeat(300) })).toHaveLength(253);
    expect(name({ group: "g".repeat(300) })).toMatch(/g-10\.0\.0\.7$/);
  });

  it.each([
    ["no group", { group: "other" }, "no WorkloadGroup"],
    ["no group", { namespace: "bank" }, "no WorkloadGroup"],
    ["identity", { serviceAccount: "admin" }, 'have service account "cart"'],
    ["address", { address: "cart.example.com" }, "no address"],
  ] as const)("is refused (%s) as %j", async (reason, changed, message) => {
    const { book, entries, settled, noted } = await rig();
    expect(() => book.connect({}, { ...CLAIM, ...changed })).toThrow(
      expect.objectContaining({ reason, message: expect.stringContaining(message) }),
    );
    await settled();
    expect(entries.size).toBe(0);
    expect(noted).toEqual(["refused"]);
  });

  it("cannot take over the entry of another service account where the group names none", async () => {
    const { book, groups } = await rig();
    groups.set("shop/carts", { ...GROUP, serviceAccount: "" });
    book.connect({}, CLAIM);
    expect(() => book.connect({}, { ...CLAIM, serviceAccount: "thief" })).toThrow("another service account");
  });

  it("stays a grace period after its last connection, and not a moment longer", async () => {
    const { book, clock, entries, settled, noted } = await rig();
    const [a, b] = [{}, {}];
    book.connect(a, CLAIM);
    book.connect(b, CLAIM);
    book.leave(a);
    clock.advance(60_000);
    book.leave(b);
    await settled();
    expect(entries.get(KEY)).toMatchObject({ metadata: { annotations: { "istio.io/disconnectedAt": expect.any(String) } } });
    clock.advance(9_999);
    await settled();
    expect(entries.has(KEY)).toBe(true);
    clock.advance(1);
    await settled();
    expect(entries.has(KEY)).toBe(false);
    expect(noted).toEqual(["registered", "updated", "disconnected", "removed"]);
  });

  it("that comes back in time is not missed", async () => {
    const { book, clock, entries, settled } = await rig();
    const first = {};
    book.connect(first, CLAIM);
    book.leave(first);
    clock.advance(9_000);
    book.connect({}, CLAIM);
    clock.advance(60_000);
    await settled();
    expect(entries.get(KEY)).toMatchObject({ metadata: { annotations: { "istio.io/connectedAt": expect.any(String) } } });
    expect(JSON.stringify(entries.get(KEY))).not.toContain("disconnectedAt");
  });

  it("follows its group, goes with it and comes back with it", async () => {
    const { book, groups, entries, settled } = await rig();
    book.connect({}, CLAIM);
    groups.set("shop/carts", { ...GROUP, ports: { http: 9090 } });
    book.groupsChanged();
    await settled();
    expect(entries.get(KEY)).toMatchObject({ spec: { ports: { http: 9090 } } });
    groups.delete("shop/carts");
    book.groupsChanged();
    await settled();
    expect(entries.has(KEY)).toBe(false);
    groups.set("shop/carts", GROUP);
    book.groupsChanged();
    await settled();
    expect(entries.has(KEY)).toBe(true);
    groups.set("shop/carts", { ...GROUP, serviceAccount: "other" });
    book.groupsChanged();
    await settled();
    expect(entries.has(KEY)).toBe(false);
  });
});

describe("whatever a node says of itself", () => {
  it("becomes a document that is judged as any other, under a name that is not too long", async () => {
    const words = fc.oneof(fc.string(), fc.constantFrom("a/b", "..", "-", "x".repeat(400), "\u0000", "é", "__proto__"));
    const said = fc.record({ labels: fc.dictionary(words, words, { maxKeys: 4 }), network: words, locality: words, address: fc.ipV6() });
    await holds(
      fc.asyncProperty(said, async (claim) => {
        const { book, entries, settled } = await rig();
        book.connect({}, { ...CLAIM, ...claim });
        await settled();
        for (const content of entries.values()) {
          const { object, problems, ref } = readObject({ origin: { source: "test" }, slot: "1", content });
          expect(object !== undefined || problems.length > 0).toBe(true);
          expect(ref === undefined || (ref.namespace === "shop" && ref.name.length <= 253)).toBe(true);
        }
      }),
      { numRuns: 200 },
    );
  });
});

describe("health that is reported", () => {
  it("counts for the caller's own entry, and is said once", async () => {
    const { book, entries, settled, said } = await rig();
    const own = {};
    book.connect(own, CLAIM);
    book.connect({}, { ...CLAIM, address: "10.0.0.8" });
    expect(book.report(own, { healthy: false, message: "no answer" })).toBe(true);
    expect(book.report({}, { healthy: false, message: "" })).toBe(false);
    await settled();
    const object = (key: string) => readObject({ origin: { source: "test" }, slot: "1", content: entries.get(key) }).object;
    expect(object(KEY)).toMatchObject({ observed: "unhealthy", annotations: { "proxy.istio.io/health-checks-enabled": "true" } });
    expect(object("WorkloadEntry/shop/carts-10.0.0.8")?.observed).toBeUndefined();
    const before = said.length;
    book.report(own, { healthy: false, message: "no answer" });
    await settled();
    expect(said).toHaveLength(before);
    book.report(own, { healthy: true, message: "" });
    await settled();
    expect(object(KEY)?.observed).toBe("healthy");
  });

  it("makes a workload ill from the start where its agent looks after it", async () => {
    const { book, entries, settled } = await rig();
    book.connect({}, { ...CLAIM, healthChecked: true });
    await settled();
    expect(entries.get(KEY)).toMatchObject({ metadata: { annotations: { "proxy.istio.io/health-checks-enabled": "true" } } });
  });
});

describe("a restart", () => {
  it("loses nobody who comes back: entries are there from the first moment, with their health", async () => {
    const store = memory();
    const clock = manualClock();
    const one = await rig(store, clock);
    const peer = {};
    one.book.connect(peer, CLAIM);
    one.book.report(peer, { healthy: false, message: "ill" });
    const gone = {};
    one.book.connect(gone, { ...CLAIM, address: "10.0.0.8" });
    one.book.leave(gone);
    await one.book.stop();
    one.book.leave(peer); // The stream is closed because istiod ends.
    clock.advance(4_000);
    const two = await rig(store, clock);
    expect(two.said[0]).toMatchObject({ type: "reset", objects: [{ scope: KEY }, { scope: "WorkloadEntry/shop/carts-10.0.0.8" }] });
    expect(two.entries.get(KEY)).toMatchObject({ status: { conditions: [{ status: "False", message: "ill" }] } });
    clock.advance(6_000);
    await two.settled();
    expect([...two.entries.keys()]).toEqual([KEY]);
    clock.advance(23_999);
    two.book.connect({}, CLAIM);
    clock.advance(60_000);
    await two.settled();
    expect(two.entries.has(KEY)).toBe(true);
  });

  it("is told to others at every turn, and stands aside where they tell the same back", async () => {
    const { book, posted, elsewhere, entries, settled } = await rig();
    const peer = {};
    book.connect(peer, CLAIM);
    expect(posted.at(-1)).toMatchObject([
      { namespace: "shop" },
      { metadata: { annotations: { "istio.io/connectedAt": expect.any(String) } } },
    ]);
    book.report(peer, { healthy: true, message: "" });
    expect(posted.at(-1)?.[1]?.status?.conditions).toMatchObject([{ type: "Healthy", status: "True" }]);
    await settled();
    expect(entries.has(KEY)).toBe(true);
    elsewhere.set(KEY, CLAIM.serviceAccount);
    book.entriesChanged([KEY]);
    await settled();
    expect(entries.has(KEY)).toBe(false);
    elsewhere.delete(KEY);
    book.entriesChanged([KEY]);
    await settled();
    expect(entries.has(KEY)).toBe(true);
    book.leave(peer);
    expect(posted.at(-1)?.[1]?.metadata.annotations).toHaveProperty(["istio.io/disconnectedAt"]);
  });

  it("may not be taken over by another account, wherever it was registered", async () => {
    const { book, elsewhere } = await rig();
    elsewhere.set(KEY, "somebody-else");
    expect(() => book.connect({}, CLAIM)).toThrow(/was registered by another service account/);
  });

  it("takes out who does not come back, and who has no group any more", async () => {
    const store = memory();
    const one = await rig(store);
    one.book.connect({}, CLAIM);
    one.book.connect({}, { ...CLAIM, address: "10.0.0.8" });
    await one.book.stop();
    const two = await rig(store);
    two.clock.advance(30_000);
    await two.settled();
    expect(two.entries.size).toBe(0);
    const three = await rig({ ...store, load: async () => JSON.parse(store.text) });
    expect(three.entries.size).toBe(0);
  });

  it("reads what it wrote, for its owner alone, and starts empty from what it cannot read", async () => {
    const dir = await mkdtemp(join(tmpdir(), "registered-"));
    onTestFinished(() => rm(dir, { recursive: true, force: true, maxRetries: 20, retryDelay: 50 }));
    const path = join(dir, "deep/registered.json");
    const one = await rig(registrationFile(path, silentLog));
    for (let index = 1; index <= 50; index++) one.book.connect({}, { ...CLAIM, address: `10.0.1.${index}` });
    await one.book.stop();
    expect((await stat(path)).mode & 0o777).toBe(0o600);
    const two = await rig(registrationFile(path, silentLog));
    expect(two.entries.size).toBe(50);
    await two.book.stop();
    await writeFile(path, '[{"name": 1}, {"na');
    expect((await rig(registrationFile(path, silentLog))).entries.size).toBe(0);
  });
});
