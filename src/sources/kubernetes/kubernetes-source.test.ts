import { afterEach, describe, expect, it } from "vitest";
import { manualClock } from "../../../test/support/manual-clock.ts";
import { eventually } from "../../../test/support/wait.ts";
import { systemClock } from "../../base/clock.ts";
import { silentLog } from "../../base/log.ts";
import { nextTurn } from "../../base/slice.ts";
import type { SourceEvent } from "../../config/object.ts";
import type { KubeClient } from "../../kube/kube-client.ts";
import { KubeError } from "../../kube/kube-error.ts";
import type { KubeObject, ResourceType } from "../../kube/resource-type.ts";
import type { ClusterSnapshot } from "./cluster-snapshot.ts";
import { type KubernetesSource, type KubernetesSourceOptions, kubernetesSource } from "./kubernetes-source.ts";
import { WATCHED_KINDS } from "./watched-kinds.ts";

const object = (namespace: string, name: string, labels = {}): KubeObject => ({
  metadata: { namespace, name, resourceVersion: "1", labels },
  spec: { hosts: [name] },
});
const fault = (status: number, reason = "no"): KubeError => new KubeError({ status, reason, message: `${reason} ${status}` });

/** A cluster in the hands of the test: objects and faults by plural, and which of Istio's kinds are installed. */
class FakeCluster {
  readonly objects: Record<string, KubeObject[]> = {};
  readonly faults: Record<string, KubeError> = {};
  /** Lists that have an end only then. */
  readonly slow: Record<string, Promise<void>> = {};
  installed = ["virtualservices"];
  /** How often it was looked which kinds there are. */
  looks = 0;

  readonly client = {
    server: "https://fake.test",
    request: async ({ path }: { readonly path: string }) => {
      if (path.startsWith("/apis/")) {
        if (path === "/apis/networking.istio.io/v1") this.looks += 1;
        return { resources: this.installed.map((name) => ({ name })) };
      }
      return {};
    },
    listEach: async ({ plural }: ResourceType, _options: object, take: (object: KubeObject) => void) => {
      const known = this.faults[plural];
      if (known !== undefined) throw known;
      for (const object of this.objects[plural] ?? []) take(object);
      await this.slow[plural];
      return { continue: "", resourceVersion: "1" };
    },
    async *watch(_type: ResourceType, { signal }: { readonly signal: AbortSignal }) {
      yield [];
      await new Promise<void>((_, reject) => signal.addEventListener("abort", () => reject(signal.reason), { once: true }));
    },
  } as unknown as KubeClient;
}

const stops: AbortController[] = [];
afterEach(() => {
  for (const stop of stops.splice(0)) stop.abort();
});

const KINDS = WATCHED_KINDS.filter(({ def }) => ["VirtualService", "DestinationRule", "Service", "Secret"].includes(def.kind));

const open = (cluster: FakeCluster, more: Partial<KubernetesSourceOptions> = {}): KubernetesSource =>
  kubernetesSource({
    client: cluster.client,
    kinds: KINDS,
    namespaces: [],
    revision: "",
    clock: systemClock,
    log: silentLog,
    times: { firstRetry: 5, mostRetry: 20, soonMs: 10, laterMs: 10, shortWatch: 0 },
    ...more,
  });

function follow(cluster: FakeCluster, more: Partial<KubernetesSourceOptions> = {}) {
  const source = open(cluster, more);
  const events: (SourceEvent & { readonly looks: number })[] = [];
  const scopes = new Set<string>();
  const stop = new AbortController();
  stops.push(stop);
  void (async () => {
    for await (const event of source.events(stop.signal)) {
      events.push({ ...event, looks: cluster.looks });
      if (event.type === "reset") for await (const { slot } of event.objects) scopes.add(slot);
      else for (const { scope, objects } of event.scopes) objects.length > 0 ? scopes.add(scope) : scopes.delete(scope);
    }
  })();
  return { source, events, told: () => [...scopes].sort() };
}

const saved = (...scopes: readonly string[]): ClusterSnapshot => ({
  load: async () => ({ objects: new Map(scopes.map((scope) => [scope, { kind: scope }])), at: systemClock.now() - 60_000 }),
  save: () => {},
  flush: async () => {},
});

describe("a cluster as source", () => {
  it("says nothing before every kind that is installed was read", async () => {
    const cluster = new FakeCluster();
    cluster.objects.services = [object("shop", "web")];
    cluster.objects.virtualservices = [object("shop", "routes")];
    cluster.faults.virtualservices = fault(500);
    const { source, events, told } = follow(cluster);
    await eventually("one kind fails", () => source.sourceHealth().state === "failing");
    expect(events).toEqual([]);
    delete cluster.faults.virtualservices;
    await eventually("all is told", () => events.length > 0);
    expect([events[0]?.type, told()]).toEqual(["reset", ["Service/shop/web", "VirtualService/shop/routes"]]);
    expect(source.sourceHealth()).toMatchObject({ state: "ok", absentKinds: ["DestinationRule"] });
  });

  it("is read before anybody asks where it is told to begin, and again where it is asked again", async () => {
    const cluster = new FakeCluster();
    cluster.objects.services = [object("shop", "web")];
    const source = open(cluster);
    source.begin(new AbortController().signal);
    await eventually("all is read", () => source.sourceHealth().state === "ok");
    const asked = async (): Promise<unknown> => {
      const stop = new AbortController();
      const events = source.events(stop.signal)[Symbol.asyncIterator]();
      const { value } = await events.next();
      stop.abort();
      expect(await events.next()).toMatchObject({ done: true }); // It ends when nothing is read any more.
      return value;
    };
    expect(await asked()).toMatchObject({ type: "reset", objects: [{ scope: "Service/shop/web" }] });
    expect(await asked()).toMatchObject({ type: "reset", objects: [{ scope: "Service/shop/web" }] });
  });

  it("does without what it may not read where that harms nobody, and waits for the rest", async () => {
    const cluster = new FakeCluster();
    cluster.faults.secrets = fault(403, "Forbidden");
    const { source, events } = follow(cluster);
    await eventually("it goes on without Secrets", () => events.length > 0);
    expect(source.sourceHealth()).toMatchObject({ state: "ok", withheldKinds: ["Secret"] });
    const other = new FakeCluster();
    other.faults.services = fault(403, "Forbidden");
    const waiting = follow(other);
    await eventually("it says why it waits", () => waiting.source.sourceHealth().message?.includes("services") === true);
    expect(waiting.events).toEqual([]);
  });

  it("finds a kind that is installed later, and believes that one is gone only when it was missed three times", async () => {
    const cluster = new FakeCluster();
    cluster.objects.destinationrules = [object("shop", "rules")];
    const { events, told } = follow(cluster);
    cluster.installed = ["virtualservices", "destinationrules"];
    await eventually("it is read", () => told().includes("DestinationRule/shop/rules"));
    cluster.installed = ["virtualservices"];
    const before = cluster.looks;
    await eventually("it is gone", () => !told().includes("DestinationRule/shop/rules"));
    expect((events.at(-1)?.looks ?? 0) - before).toBeGreaterThanOrEqual(3);
  });

  it("serves what was said before a restart while the cluster is away, and drops what is no longer there when it is back", async () => {
    const cluster = new FakeCluster();
    cluster.faults.services = fault(0, "Unreachable");
    const { source, events, told } = follow(cluster, { patienceMs: 1, snapshot: saved("Service/shop/web", "Service/shop/old") });
    await eventually("what was saved is told", () => events.length === 1);
    expect(told()).toEqual(["Service/shop/old", "Service/shop/web"]);
    expect(source.sourceHealth().state).toBe("failing");
    cluster.objects.services = [object("shop", "web")];
    delete cluster.faults.services;
    await eventually("what is gone is gone", () => told().join() === "Service/shop/web");
    await eventually("all is well", () => source.sourceHealth().state === "ok");
  });

  it("without such, lets the others go on, and tells all at once when the cluster is there", async () => {
    const cluster = new FakeCluster();
    cluster.faults.services = fault(0, "Unreachable");
    cluster.objects.virtualservices = [object("shop", "routes")];
    const { events, told } = follow(cluster, { patienceMs: 20 });
    await eventually("it says that it has nothing", () => events.length === 1);
    expect(told()).toEqual([]);
    cluster.objects.services = [object("shop", "web")];
    delete cluster.faults.services;
    await eventually("all is told", () => told().length > 0);
    expect([events.length, told()]).toEqual([2, ["Service/shop/web", "VirtualService/shop/routes"]]);
  });

  it("waits for one of which something was heard, however slow it is", async () => {
    const cluster = new FakeCluster();
    const { promise, resolve } = Promise.withResolvers<void>();
    cluster.slow.virtualservices = promise;
    cluster.objects.services = [object("shop", "web")];
    const clock = manualClock();
    const { source, events, told } = follow(cluster, { clock, patienceMs: 20 });
    await eventually("one kind is read", () => source.sourceHealth().objects === 1);
    clock.advance(1000);
    await nextTurn();
    expect(events).toEqual([]);
    resolve();
    await eventually("all is told", () => told().join() === "Service/shop/web");
    expect(events.length).toBe(1);
  });

  it("passes over objects of other revisions", async () => {
    const cluster = new FakeCluster();
    const labelled = (name: string, revision: string): KubeObject => object("shop", name, { "istio.io/rev": revision });
    cluster.objects.virtualservices = [object("shop", "all"), labelled("ours", "canary"), labelled("theirs", "stable")];
    cluster.objects.services = [labelled("web", "stable")];
    const { events, told } = follow(cluster, { revision: "canary" });
    await eventually("it is told", () => events.length > 0);
    expect(told()).toEqual(["Service/shop/web", "VirtualService/shop/all", "VirtualService/shop/ours"]);
  });

  it("says which cluster objects are of", async () => {
    const cluster = new FakeCluster();
    cluster.objects.services = [object("shop", "web")];
    const { events } = follow(cluster, { cluster: "west", name: "kubernetes:west" });
    await eventually("it is told", () => events.length > 0);
    expect(events[0]).toMatchObject({ objects: [{ cluster: "west", slot: "Service/shop/web" }] });
  });
});
