import type { JsonObject, JsonValue } from "@bufbuild/protobuf";
import type { TailBuffer } from "./tail-buffer.ts";

/** Tags of the fields of `google.protobuf.Struct`, `Value`, `ListValue` and of map entries. */
const ENTRY = 0x0a;
const KEY = 0x0a;
const VALUE = 0x12;
const NULL = 0x08;
const NUMBER = 0x11;
const TEXT = 0x1a;
const BOOL = 0x20;
const STRUCT = 0x2a;
const LIST = 0x32;
const ITEM = 0x0a;

/** Writes the content of a `google.protobuf.Struct` from the JSON it stands for, its keys in order. */
export function writeStruct(out: TailBuffer, json: JsonObject): void {
  const keys = orderedKeys(json);
  for (let i = keys.length - 1; i >= 0; i--) {
    const key = keys[i] ?? "";
    const before = out.size;
    writeNested(out, VALUE, json[key]);
    out.text(key);
    out.byte(KEY);
    out.open(ENTRY, before);
  }
}

/**
 * The keys of a map in the order they are written in: as an object lists them that was filled in the order of their names, so numbers go first.
 * Usually they are in order already.
 */
export function orderedKeys(map: object): readonly string[] {
  const keys = Object.keys(map);
  for (let i = 1; i < keys.length; i++) {
    if ((keys[i - 1] ?? "") >= (keys[i] ?? "")) return Object.keys(Object.fromEntries(keys.sort().map((key) => [key, true])));
  }
  return keys;
}

function writeNested(out: TailBuffer, tag: number, value: JsonValue | undefined): void {
  const before = out.size;
  writeValue(out, value);
  out.open(tag, before);
}

function writeValue(out: TailBuffer, value: JsonValue | undefined): void {
  switch (typeof value) {
    case "undefined":
      return;
    case "string":
      out.text(value);
      out.byte(TEXT);
      return;
    case "number":
      out.double(value);
      out.byte(NUMBER);
      return;
    case "boolean":
      out.byte(value ? 1 : 0);
      out.byte(BOOL);
      return;
    default:
      writeObject(out, value);
  }
}

function writeObject(out: TailBuffer, value: Extract<JsonValue, object | null>): void {
  if (value === null) {
    out.byte(0);
    out.byte(NULL);
    return;
  }
  const before = out.size;
  if (Array.isArray(value)) for (let i = value.length - 1; i >= 0; i--) writeNested(out, ITEM, value[i]);
  else writeStruct(out, value);
  out.open(Array.isArray(value) ? LIST : STRUCT, before);
}
