import { fromBinary, fromJson, type JsonObject, toJson } from "@bufbuild/protobuf";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { holds } from "../../../test/support/holds.ts";
import { RouteSchema, VirtualHostSchema } from "../../gen/envoy/config/route/v3/route_components_pb.js";
import { RouteConfigurationSchema } from "../../gen/envoy/config/route/v3/route_pb.js";
import { encode } from "../../wire/encode.ts";
import { messageRegistry } from "../../wire/json.ts";
import type { Applied } from "./apply.ts";
import type { Operation, Patch, RouteMatch } from "./patch.ts";
import { patchTable, type TableToPatch, wholeTable } from "./patch-table.ts";

const registry = await messageRegistry();

const tableOf = (hosts: number): Uint8Array => {
  const virtualHosts = Array.from({ length: hosts }, (_, index) => ({
    name: `h${index}`,
    domains: [`h${index}.test`, `h${index}`],
    routes: [{ name: "default", match: { prefix: "/" }, route: { cluster: `c${index}` } }],
  }));
  return encode(RouteConfigurationSchema, fromJson(RouteConfigurationSchema, { name: "80", validateClusters: false, virtualHosts }));
};

const SCHEMAS = { ROUTE_CONFIGURATION: RouteConfigurationSchema, VIRTUAL_HOST: VirtualHostSchema, HTTP_ROUTE: RouteSchema } as const;

const patch = (applyTo: keyof typeof SCHEMAS, operation: Operation, value?: JsonObject): Omit<Patch, "id"> => ({
  applyTo,
  operation,
  context: "ANY",
  route: {},
  ...(value !== undefined && { value: fromJson(SCHEMAS[applyTo], value) }),
});

/** The same for certain hosts or routes only. */
const only = (route: RouteMatch, one: Omit<Patch, "id">): Omit<Patch, "id"> => ({ ...one, route });

/** Good ones, ones that clash with others, and ones that are wrong wherever they are applied. */
const PATCHES: readonly Omit<Patch, "id">[] = [
  patch("ROUTE_CONFIGURATION", "MERGE", { responseHeadersToAdd: [{ header: { key: "x-table", value: "1" } }] }),
  patch("ROUTE_CONFIGURATION", "MERGE", { virtualHosts: [{ name: "merged", domains: ["merged.test"] }] }),
  patch("VIRTUAL_HOST", "MERGE", { requestHeadersToRemove: ["x-gone"] }),
  only({ vhost: "h2" }, patch("VIRTUAL_HOST", "MERGE", { domains: ["h1.test"] })),
  patch("VIRTUAL_HOST", "ADD", { name: "new", domains: ["new.test"] }),
  patch("VIRTUAL_HOST", "ADD", { name: "clash", domains: ["h0.test"] }),
  only({ vhost: "h0" }, patch("VIRTUAL_HOST", "REMOVE")),
  only({ domain: "h1.test" }, patch("VIRTUAL_HOST", "REPLACE", { name: "other", domains: ["other.test"] })),
  only({ route: { action: "route" } }, patch("HTTP_ROUTE", "MERGE", { route: { timeout: "3s" } })),
  only({ vhost: "h2" }, patch("HTTP_ROUTE", "MERGE", { requestHeadersToAdd: [{ header: { key: "" } }] })),
  patch("HTTP_ROUTE", "INSERT_FIRST", { name: "first", match: { prefix: "/first" }, directResponse: { status: 200 } }),
  only({ vhost: "h1", route: { name: "default" } }, patch("HTTP_ROUTE", "REMOVE")),
];

function run(steps: Generator<void, Applied>): Applied {
  for (;;) {
    const step = steps.next();
    if (step.done === true) return step.value;
  }
}

const shown = ({ body, outcome }: Applied) => ({
  table: body && toJson(RouteConfigurationSchema, fromBinary(RouteConfigurationSchema, body)),
  matched: [...outcome.matched].sort(),
  applied: [...outcome.applied].sort(),
  faults: [...outcome.faults].sort((a, b) => (a.patch < b.patch ? -1 : 1)),
});

const toPatch = (hosts: number, patches: readonly Patch[]): TableToPatch => ({
  body: tableOf(hosts),
  patches,
  registry,
  context: "SIDECAR_OUTBOUND",
  ports: [],
});

describe("a route table that is patched host by host", () => {
  it("is the table that is patched as a whole", () => {
    holds(
      fc.property(fc.shuffledSubarray(PATCHES.map((_, index) => index)), (chosen) => {
        const patches = chosen.map((index) => ({ id: `p${index}`, ...(PATCHES[index] as Omit<Patch, "id">) }));
        expect(shown(run(patchTable(toPatch(4, patches))))).toEqual(shown(wholeTable(toPatch(4, patches))));
      }),
      { numRuns: 300 },
    );
  });

  it("gives way after each host also while it looks for the patch at fault", () => {
    const wrong = PATCHES.map((one, index) => ({ id: `p${index}`, ...one })).filter((_, index) => index === 2 || index === 9);
    const steps = patchTable(toPatch(50, wrong));
    let yielded = 0;
    for (;;) {
      const step = steps.next();
      if (step.done === true) {
        expect([...step.value.outcome.applied]).toEqual(["p2"]);
        expect(step.value.outcome.faults.map((fault) => fault.patch)).toEqual(["p9"]);
        break;
      }
      yielded += 1;
    }
    expect(yielded).toBeGreaterThanOrEqual(150);
  });

  it("gives way after each host, and keeps the bytes where nothing is changed", () => {
    const [, , remove] = PATCHES.map((one, index) => ({ id: `p${index}`, ...one }));
    const steps = patchTable(toPatch(50, remove === undefined ? [] : [remove]));
    let yielded = 0;
    while (steps.next().done !== true) yielded += 1;
    expect(yielded).toBe(50);
    const nothing = toPatch(3, [{ id: "none", ...only({ vhost: "nobody" }, patch("VIRTUAL_HOST", "REMOVE")) }]);
    expect(run(patchTable(nothing)).body).toBe(nothing.body);
  });
});
