import { create, fromBinary, type JsonObject, type MessageInitShape, toBinary } from "@bufbuild/protobuf";
import { Metadata } from "@grpc/grpc-js";
import { onTestFinished } from "vitest";
import { DeltaDiscoveryRequestSchema, DeltaDiscoveryResponseSchema } from "../../src/gen/envoy/service/discovery/v3/discovery_pb.js";
import { openAdsClient } from "../../src/wire/grpc-client.ts";
import { CLUSTER_TYPE, HEALTH_TYPE } from "../../src/wire/type-urls.ts";
import { clientCredentials, type Signed } from "./identity.ts";
import type { Istiod } from "./istiod.ts";

/** The discovery stream of a machine, without a proxy behind it. */
export interface VmStream {
  /** "served" at the first answer, else why the stream ended. */
  readonly first: Promise<string>;
  /** Sends what an agent sends when its workload's health changes. */
  health(error?: string): void;
  close(): void;
}

export interface VmOptions {
  readonly token?: string;
  readonly certificate?: Pick<Signed, "key" | "chain">;
  readonly address?: string;
  readonly namespace?: string;
  readonly metadata?: JsonObject;
  /** What istiod is verified with; its own CA in files unless told. */
  readonly roots?: string;
}

/** Opens the stream as an agent does: over TLS, with its certificate or its token. */
export async function openVmStream(istiod: Istiod, options: VmOptions): Promise<VmStream> {
  const { address = "10.9.0.1", namespace = "shop" } = options;
  const metadata = new Metadata();
  if (options.token !== undefined) metadata.set("authorization", `Bearer ${options.token}`);
  const { promise: first, resolve } = Promise.withResolvers<string>();
  const client = openAdsClient({
    address: `localhost:${istiod.securePort}`,
    variant: "delta",
    credentials: await clientCredentials(istiod, options.certificate, options.roots),
    metadata,
    message(bytes) {
      const { typeUrl, nonce } = fromBinary(DeltaDiscoveryResponseSchema, bytes);
      send({ typeUrl, responseNonce: nonce });
      resolve("served");
    },
    ended: (error) => resolve(error?.message ?? "ended"),
  });
  const send = (request: MessageInitShape<typeof DeltaDiscoveryRequestSchema>): void =>
    client.send(toBinary(DeltaDiscoveryRequestSchema, create(DeltaDiscoveryRequestSchema, request)));
  onTestFinished(() => client.close());
  const node = {
    id: `sidecar~${address}~vm.${namespace}~${namespace}.svc.cluster.local`,
    metadata: { NAMESPACE: namespace, ...options.metadata },
  };
  send({ node, typeUrl: CLUSTER_TYPE, resourceNamesSubscribe: ["*"] });
  return {
    first,
    health: (error) => send({ typeUrl: HEALTH_TYPE, ...(error !== undefined && { errorDetail: { code: 500, message: error } }) }),
    close: () => client.close(),
  };
}
