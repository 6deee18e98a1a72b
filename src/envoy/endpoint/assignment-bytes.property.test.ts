import assert from "node:assert/strict";
import fc from "fast-check";
import { describe, it } from "vitest";
import { holds } from "../../../test/support/holds.ts";
import { ClusterLoadAssignmentSchema } from "../../gen/envoy/config/endpoint/v3/endpoint_pb.js";
import { encode } from "../../wire/encode.ts";
import { assignmentBytes } from "./assignment-bytes.ts";
import { buildLoadAssignment, type EndpointInput, type LoadAssignmentInput } from "./load-assignment.ts";

const text = fc.oneof(fc.constant(""), fc.string({ unit: "grapheme", maxLength: 12 }), fc.constant("a".repeat(300)));
const count = fc.oneof(fc.constant(0), fc.nat(), fc.integer({ min: 0, max: 300 }));
const counted = fc.option(count, { nil: undefined });

const endpoint: fc.Arbitrary<EndpointInput> = fc.record(
  {
    address: text,
    unixPath: fc.boolean(),
    port: count,
    others: fc.array(text, { maxLength: 2 }),
    weight: counted,
    health: fc.constantFrom("healthy", "unhealthy", "draining"),
    mutualTls: fc.boolean(),
    workload: text,
  },
  { requiredKeys: ["address", "unixPath", "port", "weight", "health", "mutualTls", "workload"] },
);

const assignment: fc.Arbitrary<LoadAssignmentInput> = fc.record({
  clusterName: text,
  localities: fc.array(
    fc.record({
      locality: fc.record({ region: text, zone: text, subzone: text }),
      priority: count,
      weight: counted,
      endpoints: fc.array(endpoint, { maxLength: 4 }),
    }),
    { maxLength: 3 },
  ),
});

describe("assignmentBytes", () => {
  it("writes what is built", () => {
    holds(
      fc.property(assignment, (input) => {
        assert.deepEqual(assignmentBytes(input), encode(ClusterLoadAssignmentSchema, buildLoadAssignment(input)));
      }),
      { numRuns: 500 },
    );
  });

  it("refuses numbers that do not fit, as when two weights add up to too much", () => {
    const locality = { region: "", zone: "", subzone: "" };
    const input = { clusterName: "a", localities: [{ locality, priority: 0, weight: 2 ** 32, endpoints: [] }] };
    assert.throws(() => assignmentBytes(input), RangeError);
  });
});
