import { create, fromBinary, type JsonObject, toBinary } from "@bufbuild/protobuf";
import type { Any } from "@bufbuild/protobuf/wkt";
import { type ChannelCredentials, Metadata } from "@grpc/grpc-js";
import { onTestFinished } from "vitest";
import {
  DeltaDiscoveryRequestSchema,
  DeltaDiscoveryResponseSchema,
  DiscoveryRequestSchema,
  DiscoveryResponseSchema,
} from "../../src/gen/envoy/service/discovery/v3/discovery_pb.js";
import { openAdsClient } from "../../src/wire/grpc-client.ts";

export interface SubscriberOptions {
  readonly port: number;
  readonly variant: "delta" | "sotw";
  readonly node: { readonly id: string; readonly metadata?: JsonObject };
  readonly typeUrl: string;
  /** None = everything. */
  readonly names?: readonly string[];
  /** How it connects and what it shows; plaintext and nothing where left out. */
  readonly secure?: { readonly credentials: ChannelCredentials; readonly token: string };
}

/** One response, whichever variant it came in. */
export interface Answer {
  readonly resources: readonly Any[];
  /** Names that are said not to exist; the other variant has no way to say so. */
  readonly removed: readonly string[];
}

/** A client of one type that takes everything it is sent and acknowledges it. */
export function subscribe({ port, variant, node, typeUrl, names = [], secure }: SubscriberOptions): readonly Answer[] {
  const answers: Answer[] = [];
  const delta = variant === "delta";
  const client = openAdsClient({
    address: `localhost:${port}`,
    variant,
    ...(secure !== undefined && { credentials: secure.credentials, metadata: bearer(secure.token) }),
    message(bytes) {
      const response = delta ? fromBinary(DeltaDiscoveryResponseSchema, bytes) : fromBinary(DiscoveryResponseSchema, bytes);
      const resources = response.resources.flatMap((one) => (one.$typeName === "google.protobuf.Any" ? [one] : (one.resource ?? [])));
      answers.push({ resources, removed: "removedResources" in response ? response.removedResources : [] });
      const answered = { typeUrl, responseNonce: response.nonce };
      client.send(
        delta
          ? toBinary(DeltaDiscoveryRequestSchema, create(DeltaDiscoveryRequestSchema, answered))
          : toBinary(DiscoveryRequestSchema, create(DiscoveryRequestSchema, { ...answered, resourceNames: [...names] })),
      );
    },
    ended() {},
  });
  onTestFinished(() => client.close());
  client.send(
    delta
      ? toBinary(DeltaDiscoveryRequestSchema, create(DeltaDiscoveryRequestSchema, { node, typeUrl, resourceNamesSubscribe: [...names] }))
      : toBinary(DiscoveryRequestSchema, create(DiscoveryRequestSchema, { node, typeUrl, resourceNames: [...names] })),
  );
  return answers;
}

function bearer(token: string): Metadata {
  const metadata = new Metadata();
  metadata.set("authorization", `Bearer ${token}`);
  return metadata;
}
