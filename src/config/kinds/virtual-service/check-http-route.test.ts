import { create } from "@bufbuild/protobuf";
import { expect, it } from "vitest";
import { RouteDestinationSchema } from "../../../gen/istio/networking/v1alpha3/virtual_service_pb.js";
import { placeOf } from "../../checks/place.ts";
import { checkDestinations } from "./check-http-route.ts";

it("destinations made from Gateway API may be nowhere, but not all without weight", () => {
  const found: unknown[] = [];
  const judge = (gatewayApi: boolean, ...weights: readonly number[]): void =>
    checkDestinations(
      weights.map((weight) => create(RouteDestinationSchema, { destination: { host: "no host" }, weight })),
      gatewayApi,
      placeOf((code, path) => found.push([code, ...path]), []),
    );
  judge(true, 0, 1);
  expect(found).toEqual([]);
  judge(true, 0, 0);
  expect(found).toEqual([["field.invalid"]]);
  judge(false, 1);
  expect(found).toEqual([["field.invalid"], ["field.host", 0, "destination", "host"]]);
});
