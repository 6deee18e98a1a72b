import { clone, type DescMessage, isMessage, type Message, type MessageShape } from "@bufbuild/protobuf";

/** What a patch changes: a resource, or a part of one. */
export type ApplyTo =
  | "LISTENER"
  | "LISTENER_FILTER"
  | "FILTER_CHAIN"
  | "NETWORK_FILTER"
  | "HTTP_FILTER"
  | "ROUTE_CONFIGURATION"
  | "VIRTUAL_HOST"
  | "HTTP_ROUTE"
  | "CLUSTER"
  | "EXTENSION_CONFIG"
  | "BOOTSTRAP";

/** `MERGE_AND_REPLACE_LIST` merges like `MERGE`, but lists of the patch take the place of those that are there. */
export type Operation =
  | "MERGE"
  | "MERGE_AND_REPLACE_LIST"
  | "ADD"
  | "REMOVE"
  | "INSERT_BEFORE"
  | "INSERT_AFTER"
  | "INSERT_FIRST"
  | "REPLACE";

/** The side a resource stands on. A patch for `ANY` takes all of them. */
export type PatchContext = "SIDECAR_INBOUND" | "SIDECAR_OUTBOUND" | "GATEWAY";

/** Conditions on a listener and what is in it; an absent one holds for everything. Names are Istio's. */
export interface ListenerMatch {
  readonly name?: string;
  readonly port?: number;
  readonly chain?: {
    readonly name?: string;
    readonly sni?: string;
    readonly transportProtocol?: string;
    readonly applicationProtocols?: readonly string[];
    readonly destinationPort?: number;
  };
  readonly filter?: string;
  readonly subFilter?: string;
  readonly listenerFilter?: string;
}

/** Conditions on a route table, its virtual hosts and their routes. */
export interface RouteMatch {
  readonly name?: string;
  readonly port?: number;
  readonly portName?: string;
  /** `namespace/name` of the Gateway. */
  readonly gateway?: string;
  readonly vhost?: string;
  readonly domain?: string;
  readonly route?: { readonly name?: string; readonly action?: "route" | "redirect" | "directResponse" };
}

/** Conditions on a cluster. Where `name` is given the others are not looked at. */
export interface ClusterMatch {
  readonly name?: string;
  readonly service?: string;
  readonly subset?: string;
  readonly port?: number;
}

/** One patch of an EnvoyFilter, read and checked. It is a plain value: applying it needs nothing else. */
export interface Patch {
  /** Stands for everything the patch says: equal ids mean equal patches. */
  readonly id: string;
  readonly applyTo: ApplyTo;
  readonly operation: Operation;
  readonly context: PatchContext | "ANY";
  readonly listener?: ListenerMatch;
  readonly route?: RouteMatch;
  readonly cluster?: ClusterMatch;
  /** The content; none for `REMOVE`. Never modified: what goes into a resource is a copy. */
  readonly value?: Message;
}

/** A copy of the content of a patch, to be put into a resource. */
export function contentFor<S extends DescMessage>(patch: Patch, schema: S): MessageShape<S> {
  if (!isMessage(patch.value, schema)) throw new PatchRefusal(`the patch has no ${schema.name}`);
  return clone(schema, patch.value);
}

/** Why a patch cannot be applied here. Costs that patch only. */
export class PatchRefusal extends Error {
  override readonly name = "PatchRefusal";
}

/** Whether a patch speaks of this side. */
export const inContext = (patch: Pick<Patch, "context">, context: PatchContext): boolean =>
  patch.context === "ANY" || patch.context === context;

/** Whether a patch changes what is there instead of adding, placing or removing. */
export const merges = ({ operation }: Pick<Patch, "operation">): boolean => operation === "MERGE" || operation === "MERGE_AND_REPLACE_LIST";

/** How lists of a merging patch are taken. */
export const listMode = ({ operation }: Pick<Patch, "operation">): "append" | "replace" =>
  operation === "MERGE_AND_REPLACE_LIST" ? "replace" : "append";
