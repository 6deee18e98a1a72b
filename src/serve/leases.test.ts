import { describe, expect, it } from "vitest";
import { createEngine } from "../engine/index.ts";
import type { ProxyView } from "../model/proxy.ts";
import { encodedBytes } from "../wire/encode.ts";
import { CLUSTER_TYPE } from "../wire/type-urls.ts";
import { NO_NAMES } from "../xds/name-sets.ts";
import { leaseProviders } from "./leases.ts";

describe("leases of proxies", () => {
  const engine = createEngine();
  const names = engine.table<string>({ name: "names" });
  names.set("a", "one");
  const set = engine.query<string, { resources: Map<string, ReturnType<typeof encodedBytes>>; failed: [] }>({
    name: "set",
    compute: (key) => ({ resources: new Map([[key, encodedBytes(CLUSTER_TYPE, names.get(key) ?? "", new Uint8Array(7))]]), failed: [] }),
  });
  const provider = { typeUrl: CLUSTER_TYPE, *prepare() {}, offered: (view: ProxyView) => set(view.namespace), provenance: () => [] };
  const leases = leaseProviders(engine, [provider]);
  const proxy = (id: string): ProxyView => ({ id, namespace: "a" }) as ProxyView;
  const offer = (id: string): unknown => leases.providers[0]?.offered(proxy(id), { wildcard: true, names: NO_NAMES });

  it("share one class and count its bytes once", () => {
    expect(offer("p1")).toBe(offer("p2"));
    expect(leases.sharing().get(CLUSTER_TYPE)).toEqual({ classes: 1, bytes: 7 });
  });

  it("give the last answer while nothing behind it changed, without asking again", () => {
    const asked: string[] = [];
    const counting = leaseProviders(engine, [
      {
        ...provider,
        *prepare(view: ProxyView) {
          asked.push(`prepare ${view.id}`);
          yield;
        },
        offered(view: ProxyView) {
          asked.push(`offered ${view.id}`);
          return set(view.namespace);
        },
      },
    ]);
    const [counted] = counting.providers;
    const [view, other] = [proxy("q1"), proxy("q1")];
    const look = (who: ProxyView): unknown => {
      const wanted = { wildcard: true, names: NO_NAMES };
      for (const _ of counted?.prepare(who, wanted) ?? []);
      return counted?.offered(who, wanted);
    };
    const first = look(view);
    names.set("b", "of no interest");
    expect(look(view)).toBe(first);
    expect(asked).toEqual(["prepare q1", "offered q1"]);
    look(other);
    expect(asked.length).toBe(4);
    names.set("a", "two");
    expect(look(other)).not.toBe(first);
    names.set("a", "one");
    counting.release(new Set());
  });

  it("give the new result where that is the answer, without asking again", () => {
    const asked: string[] = [];
    const direct = leaseProviders(engine, [
      {
        ...provider,
        isLastResult: () => true,
        offered(view: ProxyView) {
          asked.push(view.id);
          return set(view.namespace);
        },
      },
    ]);
    const view = proxy("r1");
    const wanted = { wildcard: true, names: NO_NAMES };
    const look = (): unknown => {
      for (const _ of direct.providers[0]?.prepare(view, wanted) ?? []);
      return direct.providers[0]?.offered(view, wanted);
    };
    const first = look();
    expect(direct.providers[0]?.isPrepared?.(view, wanted)).toBe(true);
    names.set("a", "two");
    expect(direct.providers[0]?.isPrepared?.(view, wanted), "nobody has worked it out yet").toBe(false);
    const second = look();
    expect(second).not.toBe(first);
    expect(second).toBe(set("a"));
    names.set("a", "three");
    const third = set("a");
    expect(direct.providers[0]?.isPrepared?.(view, wanted), "another proxy has").toBe(true);
    expect(direct.providers[0]?.offered(view, wanted)).toBe(third);
    expect(asked).toEqual(["r1"]);
    names.set("a", "one");
    direct.release(new Set());
  });

  it("keep results while a proxy is there, and no longer", () => {
    leases.release(new Set(["p2"]));
    expect(engine.sweep()).toBe(0);
    leases.release(new Set());
    expect(engine.sweep()).toBe(1);
    expect(leases.sharing().get(CLUSTER_TYPE)).toEqual({ classes: 0, bytes: 0 });
  });

  it("keep what is prepared until it is answered, whatever is swept meanwhile", () => {
    let built = 0;
    const part = engine.query<string, string>({
      name: "part",
      compute: (key) => {
        built += 1;
        return `${key} ${names.get("a") ?? ""}`;
      },
    });
    const keys = ["x", "y", "z"];
    const [careful] = leaseProviders(engine, [
      {
        ...provider,
        *prepare() {
          for (const key of keys) {
            part(key);
            yield;
          }
        },
        offered(view: ProxyView) {
          for (const key of keys) part(key);
          return set(view.namespace);
        },
      },
    ]).providers;
    const wanted = { wildcard: true, names: NO_NAMES };
    for (const _ of careful?.prepare(proxy("r1"), wanted) ?? []) engine.sweep();
    engine.sweep();
    careful?.offered(proxy("r1"), wanted);
    expect(built).toBe(keys.length);
  });
});
