import type { JsonObject, JsonValue } from "@bufbuild/protobuf";
import fc from "fast-check";

/** A configuration object as plain JSON, which is YAML too. */
export interface Doc {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: { readonly name: string; readonly namespace: string } & JsonObject;
  readonly [field: string]: JsonValue;
}

/** The key of an object. The Gateway API has a kind of its own with the name of one of Istio's. */
export const keyOf = ({ apiVersion, kind, metadata }: Doc): string =>
  `${kind === "Gateway" && apiVersion.includes(".k8s.io/") ? "KubernetesGateway" : kind}/${metadata.namespace}/${metadata.name}`;
export const textOf = (docs: readonly Doc[]): string => docs.map((doc) => JSON.stringify(doc)).join("\n---\n");

/** Writes the objects of one choice, with a number that tells them from others of their kind. */
export type Make = (index: number) => Doc | readonly Doc[];

export const several = (one: fc.Arbitrary<Make>, maxLength: number): fc.Arbitrary<readonly Make[]> => fc.array(one, { maxLength });

/** The objects of all choices, numbered within each list. */
export const allMade = (lists: readonly (readonly Make[])[]): readonly Doc[] =>
  lists.flatMap((makes) => makes.flatMap((make, index) => make(index)));
