import { describe, expect, it, onTestFinished } from "vitest";
import { eventually } from "../../../test/support/wait.ts";
import { systemClock } from "../../base/clock.ts";
import type { Log } from "../../base/log.ts";
import { silentLog } from "../../base/log.ts";
import type { ObjectReport, Reach, ReportsNow, StatusMetrics } from "../../config/status/object-report.ts";
import type { KubeClient } from "../../kube/kube-client.ts";
import { KubeError } from "../../kube/kube-error.ts";
import type { KubeObject } from "../../kube/resource-type.ts";
import { StatusKeeper } from "./status-keeper.ts";

/** Objects of an API server that hold a status, the requests it was sent, and a fault for each that is to fail. */
class Server {
  readonly objects = new Map<string, KubeObject>();
  readonly requests: string[] = [];
  fault: ((request: string) => KubeError | undefined) | undefined;
  #version = 0;

  put(name: string, generation: number, status: unknown = this.objects.get(name)?.status): void {
    this.#version += 1;
    const metadata = { name, namespace: "shop", generation, resourceVersion: String(this.#version), uid: name };
    this.objects.set(name, { metadata, ...(status !== undefined && { status }) });
  }

  get client(): KubeClient {
    const ask = (request: string): void => {
      this.requests.push(request);
      const fault = this.fault?.(request);
      if (fault !== undefined) throw fault;
    };
    const found = (name = ""): KubeObject => {
      const object = this.objects.get(name);
      if (object === undefined) throw new KubeError({ status: 404, reason: "NotFound", message: `${name} is not there` });
      return object;
    };
    const client: Pick<KubeClient, "get" | "list" | "patch"> = {
      async get(_type, { name }) {
        ask(`get ${name}`);
        return found(name);
      },
      list: async () => {
        ask("list");
        return { items: [...this.objects.values()], continue: "", resourceVersion: "1" };
      },
      patch: async (_type, { name, subresource }, { body }) => {
        ask(`patch ${name}/${subresource}`);
        const { metadata, status } = body as KubeObject;
        const before = found(name);
        if (metadata.resourceVersion !== before.metadata.resourceVersion)
          throw new KubeError({ status: 409, reason: "Conflict", message: "it was modified" });
        this.put(name ?? "", before.metadata.generation ?? 0, { ...(before.status as object), ...(status as object) });
        return found(name);
      },
    };
    return client as KubeClient;
  }
}

const done: Reach = { proxies: 1, acknowledged: 1, refusals: [] };

const report = (name: string, generation: number, reach: Reach = done): ObjectReport => ({
  key: `Sidecar/shop/${name}`,
  ref: { kind: "Sidecar", namespace: "shop", name },
  head: { version: "v1", generation, createdAt: 0, revision: "" },
  state: "current",
  problems: [],
  reach,
});

function begin(server: Server, ...names: readonly string[]) {
  const reports = new Map<string, ObjectReport>();
  const counted: string[] = [];
  const warnings: string[] = [];
  let noted: () => void = () => {};
  let looks = 0;
  const look = (): ReportsNow => {
    looks += 1;
    return { proxies: 1, objects: [...reports.values()] };
  };
  const metrics: StatusMetrics = {
    wrote: (outcome) => void counted.push(outcome),
    failed: (reason) => void counted.push(reason),
    waiting: () => {},
  };
  const log: Log = { ...silentLog, warn: (...said: readonly unknown[]) => void warnings.push(String(said.at(-1))) };
  const keeper = new StatusKeeper({
    client: server.client,
    source: { look, follow: (call) => (noted = call), metrics },
    namespaces: [],
    replicas: undefined,
    rate: { perSecond: 1_000, burst: 1_000, workers: 4 },
    intervalMs: 5,
    clock: systemClock,
    log,
  });
  const abort = new AbortController();
  onTestFinished(() => abort.abort());
  for (const name of names) reports.set(name, report(name, 1));
  void keeper.run(abort.signal);
  const say = (...some: readonly ObjectReport[]): void => {
    for (const one of some) reports.set(one.ref.name, one);
    noted();
  };
  const drop = (name: string): void => {
    reports.delete(name);
    noted();
  };
  /** Resolves when it has looked a few times more. */
  const lookedAgain = async (): Promise<void> => {
    for (let turn = 0; turn < 3; turn++) {
      const before = looks;
      noted();
      await eventually("it looks again", () => looks > before);
    }
  };
  return { say, drop, lookedAgain, counted, warnings, lead: (signal = abort.signal) => void keeper.lead([""], signal) };
}

const generationOf = (server: Server, name: string): unknown =>
  (server.objects.get(name)?.status as { observedGeneration?: number } | undefined)?.observedGeneration;

describe("keeping statuses", () => {
  it("writes what differs as long as it leads, and asks for nothing that is right", async () => {
    const server = new Server();
    for (const name of ["a", "b"]) server.put(name, 1);
    const first = begin(server, "a", "b");
    await first.lookedAgain();
    expect(server.requests).toEqual([]);
    const term = new AbortController();
    first.lead(term.signal);
    await eventually("both are written", () => ["a", "b"].every((name) => generationOf(server, name) === 1));
    term.abort();
    await eventually("it no longer leads", () => server.requests.length === 5);

    // Another that leads after it finds everything in order with one look.
    server.requests.length = 0;
    const next = begin(server, "a", "b");
    next.lead();
    server.put("a", 2);
    next.say(report("a", 2));
    await eventually("the change is written", () => generationOf(server, "a") === 2);
    expect(server.requests.filter((one) => one !== "list")).toEqual(["get a", "patch a/status"]);
    first.say(report("b", 9));
    next.say(report("b", 1, { proxies: 7, acknowledged: 2, refusals: [] }));
    next.say(report("a", 2, { proxies: 0, acknowledged: 0, refusals: [] }));
    server.put("a", 3);
    next.say(report("a", 3));
    await eventually("the next change is written", () => generationOf(server, "a") === 3);
    expect(server.requests.filter((one) => one.endsWith(" b") || one.endsWith("b/status"))).toEqual([]);
  });

  it("writes to an object that was made anew just as it was", async () => {
    const server = new Server();
    server.put("a", 1);
    const { say, lead } = begin(server, "a");
    lead();
    await eventually("it is written", () => generationOf(server, "a") === 1);
    server.objects.delete("a");
    server.put("a", 1);
    say({ ...report("a", 1), head: { ...report("a", 1).head, createdAt: 7 } });
    await eventually("it is written again", () => generationOf(server, "a") === 1);
  });

  it("writes again what somebody else wrote at the same time, and leaves alone what is another by now, or gone", async () => {
    const server = new Server();
    for (const name of ["a", "b"]) server.put(name, 1);
    let conflicts = 0;
    server.fault = (request) => {
      if (request === "patch a/status" && conflicts < 2) {
        conflicts += 1;
        server.put("a", 1, { conditions: [{ type: "Theirs", status: "True" }] });
      }
      return undefined;
    };
    server.put("b", 2);
    const { counted, warnings, lead } = begin(server, "a", "b", "gone");
    lead();
    await eventually("it is written", () => generationOf(server, "a") === 1);
    expect(server.objects.get("a")?.status).toMatchObject({
      conditions: [{ type: "Theirs" }, { type: "Accepted" }, { type: "Reconciled" }],
    });
    expect(counted.sort()).toEqual(["Conflict", "Conflict", "gone", "outdated", "written"]);
    expect([generationOf(server, "b"), warnings]).toEqual([undefined, []]);
  });

  it("says once that it may not, and does not ask again and again", async () => {
    const server = new Server();
    const names = Array.from({ length: 200 }, (_, index) => `o${index}`);
    for (const name of names) server.put(name, 1);
    server.fault = (request) =>
      request.startsWith("patch") ? new KubeError({ status: 403, reason: "Forbidden", message: "you may not" }) : undefined;
    const { counted, warnings, lead, lookedAgain } = begin(server, ...names);
    lead();
    await eventually("it is told", () => warnings.length > 0);
    await lookedAgain();
    expect(warnings).toEqual(["the status of an object could not be written; it is tried again later"]);
    expect(server.requests.filter((one) => one.startsWith("patch")).length).toBeLessThanOrEqual(4);
    expect(new Set(counted)).toEqual(new Set(["Forbidden"]));
  });

  it("forgets objects that are removed while the server is away", async () => {
    const server = new Server();
    for (const name of ["a", "b"]) server.put(name, 1);
    let isAway = true;
    server.fault = (request) =>
      isAway && request !== "list" ? new KubeError({ status: 0, reason: "Unreachable", message: "no connection" }) : undefined;
    const { drop, counted, lead } = begin(server, "a", "b");
    lead();
    await eventually("it fails", () => counted.includes("Unreachable"));
    drop("a");
    isAway = false;
    await eventually("the other is written", () => generationOf(server, "b") === 1);
    expect(generationOf(server, "a")).toBeUndefined();
  });
});
