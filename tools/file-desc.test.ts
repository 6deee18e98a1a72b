import {
  create,
  createFileRegistry,
  createRegistry,
  type DescField,
  type DescFile,
  type DescMessage,
  fromBinary,
  toBinary,
} from "@bufbuild/protobuf";
import { type FileDescriptorProto, FileDescriptorProtoSchema, FileDescriptorSetSchema } from "@bufbuild/protobuf/wkt";
import { describe, expect, it } from "vitest";
import { allFiles } from "../src/gen/all-files.js";

/** As in a process that starts from a snapshot: nobody has looked at them, and what was decoded is not there any more. */
for (const file of allFiles) if ("forget" in file && typeof file.forget === "function") file.forget();

const registry = createRegistry(...allFiles);

/** The same files as the library describes them, whole. */
const library = createFileRegistry(create(FileDescriptorSetSchema, { file: protosWithImports() }));

/** Imports first, and with the names of all imports, which generated code leaves out. */
function protosWithImports(): FileDescriptorProto[] {
  const files = new Map<string, DescFile>();
  const add = (file: DescFile): void => {
    if (files.has(file.proto.name)) return;
    for (const one of file.dependencies) add(one);
    files.set(file.proto.name, file);
  };
  for (const file of allFiles) add(file);
  return [...files.values()].map(({ proto, dependencies }) => {
    const copy = fromBinary(FileDescriptorProtoSchema, toBinary(FileDescriptorProtoSchema, proto));
    copy.dependency = dependencies.map((one) => one.proto.name);
    return copy;
  });
}

const summary = (field: DescField): unknown => [
  ...[String(field), field.name, field.localName, field.number, field.jsonName, field.fieldKind, field.presence, field.deprecated],
  ...[field.message?.typeName, field.enum?.typeName, field.scalar, field.oneof?.localName],
  ...(field.fieldKind === "list" ? [field.listKind, field.packed] : []),
  ...(field.fieldKind === "map" ? [field.mapKind, field.mapKey] : []),
];

function* messagesOf(files: Iterable<DescFile>): Iterable<DescMessage> {
  const within = function* (messages: readonly DescMessage[]): Iterable<DescMessage> {
    for (const message of messages) {
      yield message;
      yield* within(message.nestedMessages);
    }
  };
  for (const file of files) yield* within(file.messages);
}

describe("what describes a generated file, decoded when it is asked for", () => {
  it("says what the library says", () => {
    let seen = 0;
    for (const message of messagesOf(allFiles)) {
      const want = library.getMessage(message.typeName);
      expect(message.fields.map(summary)).toEqual(want?.fields.map(summary));
      expect(message.members.map(({ localName }) => localName)).toEqual(want?.members.map(({ localName }) => localName));
      expect([String(message), message.deprecated, message.name]).toEqual([String(want), want?.deprecated, want?.name]);
      seen += 1;
    }
    expect(seen).toBeGreaterThan(1_000);
  });

  it("points to the one descriptor of each type", () => {
    for (const message of messagesOf(allFiles)) {
      for (const field of message.fields) {
        expect(field.parent).toBe(message);
        if (field.message !== undefined) expect(field.message).toBe(registry.getMessage(field.message.typeName) ?? field.message);
        if (field.enum !== undefined) expect(field.enum).toBe(registry.getEnum(field.enum.typeName) ?? field.enum);
      }
      for (const oneof of message.oneofs) expect(oneof.parent).toBe(message);
      for (const one of message.nestedEnums) for (const value of one.values) expect(value.parent).toBe(one);
    }
  });

  it("says of enums what the library says", () => {
    for (const type of registry) {
      if (type.kind !== "enum") continue;
      const want = library.getEnum(type.typeName);
      expect([type.open, type.sharedPrefix, String(type)]).toEqual([want?.open, want?.sharedPrefix, String(want)]);
      expect(type.values.map(({ name, localName, number }) => [name, localName, number])).toEqual(
        want?.values.map(({ name, localName, number }) => [name, localName, number]),
      );
    }
  });
});
