import { create, fromBinary, type MessageInitShape, toBinary } from "@bufbuild/protobuf";
import { Client, Metadata, status } from "@grpc/grpc-js";
import { describe, expect, it, onTestFinished } from "vitest";
import {
  ServerReflectionRequestSchema,
  type ServerReflectionResponse,
  ServerReflectionResponseSchema,
} from "../../src/gen/grpc/reflection/v1/reflection_pb.js";
import { clientCredentials, SERVER_NAME } from "../support/identity.ts";
import type { Istiod } from "../support/istiod.ts";
import { startSecureIstiod, tokenFor } from "../support/secure-proxy.ts";

type Asked = NonNullable<MessageInitShape<typeof ServerReflectionRequestSchema>["messageRequest"]>;
type Told = ServerReflectionResponse["messageResponse"];

/** Asks as tools do: on one stream, and gives the answers with the status at the end. */
async function ask(
  istiod: Istiod,
  { version = "v1", token }: { readonly version?: string; readonly token?: string },
  asked: readonly Asked[],
) {
  const client = new Client(`127.0.0.1:${istiod.securePort}`, await clientCredentials(istiod), {
    "grpc.ssl_target_name_override": SERVER_NAME,
  });
  onTestFinished(() => client.close());
  const metadata = new Metadata();
  if (token !== undefined) metadata.set("authorization", `Bearer ${token}`);
  const told: Told[] = [];
  const { promise, resolve } = Promise.withResolvers<{ readonly code: number; readonly told: readonly Told[] }>();
  const stream = client.makeBidiStreamRequest(
    `/grpc.reflection.${version}.ServerReflection/ServerReflectionInfo`,
    (request: Asked) =>
      Buffer.from(toBinary(ServerReflectionRequestSchema, create(ServerReflectionRequestSchema, { messageRequest: request }))),
    (bytes: Buffer) => fromBinary(ServerReflectionResponseSchema, bytes).messageResponse,
    metadata,
  );
  stream.on("data", (one: Told) => void told.push(one));
  stream.on("error", () => {});
  stream.on("status", ({ code }: { readonly code: number }) => resolve({ code, told }));
  for (const one of asked) stream.write(one);
  stream.end();
  return promise;
}

describe("server reflection", () => {
  it("tells tools which services there are, where they have proved who they are", async () => {
    const istiod = await startSecureIstiod();
    const ADS = "envoy.service.discovery.v3.AggregatedDiscoveryService";
    const asked: readonly Asked[] = [
      { case: "listServices", value: "" },
      { case: "fileContainingSymbol", value: ADS },
    ];
    for (const version of ["v1", "v1alpha"]) {
      const { code, told } = await ask(istiod, { version, token: tokenFor("shop", "web") }, asked);
      expect(code).toBe(status.OK);
      const [services, file] = told;
      expect(services?.case === "listServicesResponse" && services.value.service.map(({ name }) => name)).toEqual([
        ADS,
        "envoy.service.secret.v3.SecretDiscoveryService",
        "grpc.health.v1.Health",
        "grpc.reflection.v1.ServerReflection",
        "grpc.reflection.v1alpha.ServerReflection",
        "istio.v1.auth.IstioCertificateService",
      ]);
      expect(file?.case).toBe("fileDescriptorResponse");
    }
    expect(await ask(istiod, {}, asked)).toEqual({ code: status.UNAUTHENTICATED, told: [] });
    expect(await ask(istiod, { token: "guess" }, asked)).toEqual({ code: status.UNAUTHENTICATED, told: [] });
  });
});
