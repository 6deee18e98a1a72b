import { fromBinary, toBinary } from "@bufbuild/protobuf";
import { type Address, AddressSchema } from "../../gen/envoy/config/core/v3/address_pb.js";
import { TrafficDirection } from "../../gen/envoy/config/core/v3/base_pb.js";
import { type Listener, ListenerSchema } from "../../gen/envoy/config/listener/v3/listener_pb.js";
import type { Encoded, ResourceSet } from "../../wire/encoded.ts";

/** What patches ask of a listener before they look inside. */
export interface ListenerFacts {
  readonly inbound: boolean;
  /** Name and addresses only. */
  readonly listener: Listener;
}

const known = new WeakMap<Encoded, ListenerFacts>();

/** Read once per listener. What is inside it is not kept. */
export function listenerFacts(resource: Encoded): ListenerFacts {
  let facts = known.get(resource);
  if (facts === undefined) {
    const { trafficDirection, ...listener } = fromBinary(ListenerSchema, resource.body);
    facts = {
      inbound: trafficDirection === TrafficDirection.INBOUND,
      listener: { ...listener, trafficDirection, filterChains: [], listenerFilters: [], accessLog: [] },
    };
    delete facts.listener.defaultFilterChain;
    known.set(resource, facts);
  }
  return facts;
}

/** Envoy has one listener per address. */
export function addressClash(added: Encoded, present: ResourceSet["resources"]): string | undefined {
  const own = new Set(addressesOf(added));
  for (const [name, resource] of present) {
    if (addressesOf(resource).some((address) => own.has(address))) return `listener ${name} stands at the same address`;
  }
  return undefined;
}

function addressesOf(resource: Encoded): readonly string[] {
  const { address, additionalAddresses } = listenerFacts(resource).listener;
  return [address, ...additionalAddresses.map((one) => one.address)].flatMap((one) => (one === undefined ? [] : [addressId(one)]));
}

const addressId = (address: Address): string => Buffer.from(toBinary(AddressSchema, address)).toString("base64");
