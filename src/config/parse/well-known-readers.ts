import { type DescField, type DescMessage, fromJson, type JsonValue } from "@bufbuild/protobuf";
import { LONGEST_SECONDS } from "../../base/duration.ts";
import { quote } from "../../base/quote.ts";
import { parseGoDuration } from "./go-duration.ts";
import { enter, isRecord, type Reader, type Reading, refuse, refuseType, typeName } from "./reading.ts";

/** Messages that JSON writes in a form of their own. Wrappers are not here, since fields hold them as plain scalars, nor `Any`, which depends on the field. */
export function wellKnownReader(desc: DescMessage): Reader | undefined {
  switch (desc.typeName) {
    case "google.protobuf.Duration":
      return readDuration;
    case "google.protobuf.Struct":
    case "google.protobuf.Value":
    case "google.protobuf.ListValue":
    case "google.protobuf.Timestamp":
    case "google.protobuf.FieldMask":
      return (json, reading) => convert(desc, json, reading);
    default:
      return undefined;
  }
}

/** Fields of type Struct hold the object itself: it is copied, so that it is JSON for certain and nobody else's. */
export function readJsonObject(json: unknown, reading: Reading): unknown {
  return isRecord(json) ? copyJson(json, reading) : refuseType(reading, json, "an object");
}

function readDuration(json: unknown, reading: Reading): unknown {
  if (typeof json !== "string") return refuseType(reading, json, "a duration such as 100ms or 1h30m");
  const duration = parseGoDuration(json);
  if (duration === undefined) return refuse(reading, "schema.wrong-type", `${quote(json)} is not a duration such as 100ms or 1h30m`);
  const isCounted = duration.seconds <= LONGEST_SECONDS && duration.seconds >= -LONGEST_SECONDS;
  return isCounted ? duration : refuse(reading, "field.range", `${quote(json)} is longer than the 292 years that proxies can count`);
}

function convert(desc: DescMessage, json: unknown, reading: Reading): unknown {
  const copy = copyJson(json, reading);
  if (copy === undefined) return undefined;
  try {
    return fromJson(desc, copy);
  } catch {
    return refuse(reading, "schema.wrong-type", `must be a ${desc.name}, not ${typeName(json)}`);
  }
}

/** The reader of what stands in an `Any`, which is the message `desc`, of a field. */
export function anyReader(field: DescField, desc: DescMessage): Reader {
  return (json, reading) => {
    if (!isRecord(json) || typeof json["@type"] !== "string") return refuseType(reading, json, 'an object with "@type"');
    if (reading.anyContent === "unread") return undefined;
    if (reading.anyContent === "refuse") return refuse(reading, "schema.wrong-type", "messages of arbitrary type cannot be given here");
    if (typeof reading.anyContent === "function") return reading.anyContent(json, reading, field);
    const copy = copyJson(json, reading);
    if (copy === undefined) return undefined;
    try {
      return fromJson(desc, copy, { registry: reading.anyContent });
    } catch {
      return refuse(reading, "schema.wrong-type", `must be a ${quote(json["@type"])}`);
    }
  };
}

/** A deep copy that holds JSON and nothing else; undefined when something else was found, and reported. */
export function copyJson(json: unknown, reading: Reading): JsonValue | undefined {
  if (json === null || typeof json === "string" || typeof json === "boolean") return json;
  if (typeof json === "number") return Number.isFinite(json) ? json : refuseType(reading, json, "JSON");
  if (Array.isArray(json)) return copyList(json, reading);
  return isRecord(json) ? copyObject(json, reading) : refuseType(reading, json, "JSON");
}

function copyList(json: readonly unknown[], reading: Reading): JsonValue | undefined {
  if (!enter(reading, json.length)) return undefined;
  const list: JsonValue[] = [];
  for (let index = 0; index < json.length; index++) {
    reading.path.push(index);
    const item = copyJson(json[index], reading);
    reading.path.pop();
    if (item === undefined) return undefined;
    list.push(item);
  }
  return list;
}

function copyObject(json: Readonly<Record<string, unknown>>, reading: Reading): JsonValue | undefined {
  const keys = Object.keys(json);
  if (!enter(reading, keys.length)) return undefined;
  const object: Record<string, JsonValue> = {};
  for (const key of keys) {
    reading.path.push(key);
    const value = key === "__proto__" ? refuse(reading, "field.invalid", "is not allowed as a key") : copyJson(json[key], reading);
    reading.path.pop();
    if (value === undefined) return undefined;
    object[key] = value;
  }
  return object;
}
