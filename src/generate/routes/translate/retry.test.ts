import { fromJson, type JsonObject } from "@bufbuild/protobuf";
import { describe, expect, it } from "vitest";
import { HTTPRetrySchema } from "../../../gen/istio/networking/v1alpha3/virtual_service_pb.js";
import { translateRetry } from "./retry.ts";

const retry = (json: JsonObject) => fromJson(HTTPRetrySchema, json);

describe("retries", () => {
  it("are the rule's, else the mesh's, else two", () => {
    const mesh = retry({ attempts: 5 });
    expect(translateRetry(retry({ attempts: 7 }), mesh, { hashed: false })?.attempts).toBe(7);
    expect(translateRetry(undefined, mesh, { hashed: false })?.attempts).toBe(5);
    expect(translateRetry(undefined, undefined, { hashed: false })?.attempts).toBe(2);
    expect(translateRetry(retry({ attempts: 0 }), mesh, { hashed: false })).toBeUndefined();
  });

  it("have codes apart from conditions", () => {
    expect(translateRetry(retry({ attempts: 1, retryOn: "503, reset ,404" }), undefined, { hashed: false })).toMatchObject({
      retryOn: "reset,retriable-status-codes",
      statusCodes: [503, 404],
    });
  });

  it("stay at the host that a hash chose, unless told otherwise", () => {
    expect(translateRetry(undefined, undefined, { hashed: true })?.avoidPreviousHosts).toBe(false);
    expect(translateRetry(retry({ attempts: 1, retryIgnorePreviousHosts: true }), undefined, { hashed: true })?.avoidPreviousHosts).toBe(
      true,
    );
  });
});
