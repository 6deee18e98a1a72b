import { create, fromBinary, type MessageInitShape, toBinary } from "@bufbuild/protobuf";
import { FileDescriptorProtoSchema } from "@bufbuild/protobuf/wkt";
import { assert, describe, it } from "vitest";
import type { Caller } from "../authn/authenticator.ts";
import { AuthnError } from "../authn/authn-error.ts";
import { ServerReflectionRequestSchema, ServerReflectionResponseSchema } from "../gen/grpc/reflection/v1/reflection_pb.js";
import type { Peer } from "../wire/discovery-stream.ts";
import { reflection } from "./reflection.ts";

const V1 = "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo";
const caller = { identity: { trustDomain: "td", namespace: "shop", serviceAccount: "web" }, by: "token" } as unknown as Caller;
const peerOf = (): Peer => ({ address: "", header: () => undefined, certificate: undefined });

type Asked = MessageInitShape<typeof ServerReflectionRequestSchema>["messageRequest"];

function reflected(authenticate: () => Promise<Caller> = async () => caller) {
  const refusals: string[] = [];
  const methods = reflection({
    methods: ["/envoy.service.discovery.v3.AggregatedDiscoveryService/StreamAggregatedResources", "/grpc.health.v1.Health/Check"],
    authenticate,
    refused: ({ message }) => void refusals.push(message),
  });
  const ask = async (messageRequest: Asked, peer = peerOf(), path = V1) => {
    const bytes = toBinary(
      ServerReflectionRequestSchema,
      create(ServerReflectionRequestSchema, { host: "h", ...(messageRequest && { messageRequest }) }),
    );
    return fromBinary(ServerReflectionResponseSchema, (await methods[path]?.(bytes, peer)) ?? new Uint8Array());
  };
  const fileOf = async (messageRequest: Asked): Promise<string | undefined> => {
    const { messageResponse: told } = await ask(messageRequest);
    if (told.case === "errorResponse") return `error ${told.value.errorCode}`;
    assert.equal(told.case, "fileDescriptorResponse");
    if (told.case !== "fileDescriptorResponse") return undefined;
    return told.value.fileDescriptorProto.map((bytes) => fromBinary(FileDescriptorProtoSchema, bytes).name).join();
  };
  return { methods, ask, fileOf, refusals };
}

describe("reflection", () => {
  it("names the services, under both of its own names", async () => {
    const { methods, ask } = reflected();
    for (const path of Object.keys(methods)) {
      const { messageResponse: told, validHost, originalRequest } = await ask({ case: "listServices", value: "" }, peerOf(), path);
      assert.equal(validHost, "h");
      assert.equal(originalRequest?.messageRequest.case, "listServices");
      assert.deepEqual(told.case === "listServicesResponse" ? told.value.service.map(({ name }) => name) : told.case, [
        "envoy.service.discovery.v3.AggregatedDiscoveryService",
        "grpc.health.v1.Health",
        "grpc.reflection.v1.ServerReflection",
        "grpc.reflection.v1alpha.ServerReflection",
      ]);
    }
    assert.equal(Object.keys(methods).length, 2);
  });

  const ADS = "envoy.service.discovery.v3.AggregatedDiscoveryService";
  const symbols: Readonly<Record<string, string>> = {
    [ADS]: "envoy/service/discovery/v3/ads.proto",
    [`${ADS}.StreamAggregatedResources`]: "envoy/service/discovery/v3/ads.proto",
    [`${ADS}.Nothing`]: "error 5",
    "envoy.config.cluster.v3.Cluster.DiscoveryType": "envoy/config/cluster/v3/cluster.proto",
    "google.protobuf.Any": "google/protobuf/any.proto",
    "grpc.health.v1.HealthCheckResponse.status": "grpc/health/v1/health.proto",
    "no.such.Thing": "error 5",
    "": "error 5",
  };
  for (const [symbol, file] of Object.entries(symbols))
    it(`finds ${JSON.stringify(symbol)} in ${file}`, async () =>
      assert.equal(await reflected().fileOf({ case: "fileContainingSymbol", value: symbol }), file));

  it("gives every file that a service needs", async () => {
    const { ask } = reflected();
    const seen = new Set<string>(["envoy/service/discovery/v3/ads.proto"]);
    for (const name of seen) {
      const { messageResponse: told } = await ask({ case: "fileByFilename", value: name });
      assert.equal(told.case, "fileDescriptorResponse", name);
      if (told.case !== "fileDescriptorResponse") continue;
      for (const bytes of told.value.fileDescriptorProto)
        for (const one of fromBinary(FileDescriptorProtoSchema, bytes).dependency) seen.add(one);
    }
    assert.isAbove(seen.size, 20);
  });

  it("knows extensions", async () => {
    const { fileOf, ask } = reflected();
    const value = { containingType: "google.protobuf.FieldOptions", extensionNumber: 1071 };
    assert.equal(await fileOf({ case: "fileContainingExtension", value }), "validate/validate.proto");
    const { messageResponse: told } = await ask({ case: "allExtensionNumbersOfType", value: "google.protobuf.FieldOptions" });
    assert.include(told.case === "allExtensionNumbersResponse" ? told.value.extensionNumber : [], 1071);
    assert.equal(await fileOf({ case: "allExtensionNumbersOfType", value: "no.such.Thing" }), "error 5");
    assert.equal(await fileOf(undefined), "error 3");
  });

  it("answers who has proved who it is, and asks for that once in a call", async () => {
    let proofs = 0;
    const { ask } = reflected(async () => {
      proofs += 1;
      return caller;
    });
    const peer = peerOf();
    for (let count = 0; count < 3; count++) await ask({ case: "listServices", value: "" }, peer);
    assert.equal(proofs, 1);
    for (const failing of [
      async () => Promise.reject(new AuthnError("no credentials", "who are you")),
      async () => ({ ...caller, once: {} }) as unknown as Caller,
    ]) {
      const { ask: askStrange, refusals } = reflected(failing);
      const refusal = await askStrange({ case: "listServices", value: "" }).then(
        () => "answered",
        (error: { readonly status?: number }) => error.status,
      );
      assert.equal(refusal, 16);
      assert.equal(refusals.length, 1);
    }
  });
});
