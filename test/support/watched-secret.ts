import { create, fromBinary, toBinary } from "@bufbuild/protobuf";
import { Metadata } from "@grpc/grpc-js";
import { onTestFinished } from "vitest";
import { SecretSchema } from "../../src/gen/envoy/extensions/transport_sockets/tls/v3/secret_pb.js";
import { DeltaDiscoveryRequestSchema, DeltaDiscoveryResponseSchema } from "../../src/gen/envoy/service/discovery/v3/discovery_pb.js";
import { openAdsClient } from "../../src/wire/grpc-client.ts";
import { SECRET_TYPE } from "../../src/wire/type-urls.ts";
import { clientCredentials } from "./identity.ts";
import type { Istiod } from "./istiod.ts";

/** A gateway of namespace `shop` that asks for a credential. */
export interface SecretAsker {
  readonly account: string;
  readonly token: string;
  readonly name: string;
  /** The cluster it says it is in, to who judges its token and in its node. */
  readonly cluster?: string;
}

/** What it is told. */
export interface WatchedSecret {
  /** One answer after another: `+` given, `-` taken away. */
  readonly answers: readonly string[];
  /** The chain it was given last, in PEM. */
  readonly chain: string;
  /** Why its stream ended. */
  readonly refusal: string;
}

/** Asks for a credential over SDS, by token, until the test ends. */
export async function watchSecret(istiod: Istiod, { account, token, name, cluster }: SecretAsker): Promise<WatchedSecret> {
  const told = { answers: [] as string[], chain: "", refusal: "" };
  const metadata = new Metadata();
  metadata.set("authorization", `Bearer ${token}`);
  if (cluster !== undefined) metadata.set("clusterid", cluster);
  const client = openAdsClient({
    address: `localhost:${istiod.securePort}`,
    credentials: await clientCredentials(istiod),
    variant: "delta",
    metadata,
    message(bytes) {
      const { resources, removedResources, nonce } = fromBinary(DeltaDiscoveryResponseSchema, bytes);
      told.answers.push(...resources.map((one) => `+${one.name}`), ...removedResources.map((one) => `-${one}`));
      for (const { resource } of resources) told.chain = chainOf(resource?.value ?? new Uint8Array());
      const ack = create(DeltaDiscoveryRequestSchema, { typeUrl: SECRET_TYPE, responseNonce: nonce });
      client.send(toBinary(DeltaDiscoveryRequestSchema, ack));
    },
    ended(error) {
      told.refusal = String(error?.message ?? "");
    },
  });
  onTestFinished(() => client.close());
  const said = { NAMESPACE: "shop", ...(cluster !== undefined && { CLUSTER_ID: cluster }) };
  const node = { id: `router~127.0.0.8~${account}.shop~shop.svc.cluster.local`, metadata: said };
  const request = create(DeltaDiscoveryRequestSchema, { node, typeUrl: SECRET_TYPE, resourceNamesSubscribe: [name] });
  client.send(toBinary(DeltaDiscoveryRequestSchema, request));
  return told;
}

function chainOf(bytes: Uint8Array): string {
  const { type } = fromBinary(SecretSchema, bytes);
  const chain = type.case === "tlsCertificate" ? type.value.certificateChain?.specifier : undefined;
  return chain?.case === "inlineBytes" ? Buffer.from(chain.value).toString() : "";
}
