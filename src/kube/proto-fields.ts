import { type Picked, pickOnly } from "./json-bytes.ts";

/** How the value of a field is written in JSON: `time` as its text, `map` as an object of texts, `intOrString` as either. */
export type ScalarKind = "string" | "int" | "bool" | "time" | "map" | "intOrString";

/** A field that is read: its number in protobuf and what it holds, a text where nothing is said. */
export interface FieldSpec {
  readonly at: number;
  readonly is?: ScalarKind;
  /** A message, of which these are read. */
  readonly of?: FieldSpecs;
  readonly repeated?: true;
  /**
   * The empty text, zero and false are said in JSON too. API servers always send fields that cannot be absent, also where JSON leaves them out; those
   * that can be are only sent where they were written, and then mean what they say.
   */
  readonly zero?: true;
}

/** Fields by their names in JSON. */
export interface FieldSpecs {
  readonly [name: string]: FieldSpec;
}

/** A field as a reader looks it up. */
export interface ProtoField {
  readonly name: string;
  readonly kind: ScalarKind | ProtoFields;
  readonly repeated: boolean;
  readonly zero: boolean;
}

/** The fields that are read of a message, by number. */
export type ProtoFields = readonly (ProtoField | undefined)[];

/** What is read of objects of a kind, in either encoding. */
export interface ObjectFields {
  readonly json: Picked;
  readonly proto: ProtoFields;
}

/** Reads these fields of an object and nothing else. */
export const objectFields = (specs: FieldSpecs): ObjectFields => ({ json: pickOnly(pathsOf(specs)), proto: protoFields(specs) });

/** The fields of a message. */
export function protoFields(specs: FieldSpecs): ProtoFields {
  const fields: (ProtoField | undefined)[] = [];
  for (const [name, { at, is = "string", of, repeated = false, zero = false }] of Object.entries(specs)) {
    while (fields.length <= at) fields.push(undefined);
    fields[at] = { name, kind: of === undefined ? is : protoFields(of), repeated, zero };
  }
  return fields;
}

const pathsOf = (specs: FieldSpecs): readonly string[] =>
  Object.entries(specs).flatMap(([name, { of }]) => (of === undefined ? [name] : pathsOf(of).map((path) => `${name}.${path}`)));
