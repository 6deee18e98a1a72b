import { type DescEnum, ScalarType } from "@bufbuild/protobuf";
import { quote } from "../../base/quote.ts";
import { sharedText } from "../../base/shared-text.ts";
import { type Reader, type Reading, refuse, refuseType } from "./reading.ts";

const INTEGER = /^-?\d{1,20}$/;
const DECIMAL = /^-?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?$/;
const BASE64 = /^[A-Za-z0-9+/_-]*={0,2}$/;
const SPECIAL_NUMBERS: Readonly<Record<string, number>> = {
  NaN: Number.NaN,
  Infinity: Number.POSITIVE_INFINITY,
  "-Infinity": Number.NEGATIVE_INFINITY,
};

/** The reader of one scalar type. Numbers may be written as texts, as Go's jsonpb allows; texts and booleans may not be anything else. */
export function scalarReader(type: ScalarType): Reader {
  switch (type) {
    case ScalarType.STRING:
      return readString;
    case ScalarType.BOOL:
      return readBool;
    case ScalarType.BYTES:
      return readBytes;
    case ScalarType.INT32:
    case ScalarType.SINT32:
    case ScalarType.SFIXED32:
      return integerReader(-2_147_483_648, 2_147_483_647);
    case ScalarType.UINT32:
    case ScalarType.FIXED32:
      return integerReader(0, 4_294_967_295);
    case ScalarType.INT64:
    case ScalarType.SINT64:
    case ScalarType.SFIXED64:
      return longReader(-(2n ** 63n), 2n ** 63n - 1n);
    case ScalarType.UINT64:
    case ScalarType.FIXED64:
      return longReader(0n, 2n ** 64n - 1n);
    case ScalarType.DOUBLE:
    case ScalarType.FLOAT:
      return readNumber;
  }
}

/** Enums by name, or by number; an unknown number is kept, as proto3 does, and left to validation. */
export function enumReader(desc: DescEnum): Reader {
  const byName = new Map(desc.values.map((value) => [value.name, value.number]));
  const names = desc.values.map((value) => value.name).join(", ");
  return (json, reading) => {
    if (typeof json === "number" && Number.isInteger(json)) return json;
    const value = typeof json === "string" ? byName.get(json) : undefined;
    if (value !== undefined) return value;
    return typeof json === "string"
      ? refuse(reading, "schema.wrong-type", `${quote(json)} is not one of ${names}`)
      : refuseType(reading, json, `one of ${names}`);
  };
}

/** The reader of a map's keys, which are always texts in JSON. */
export function mapKeyReader(type: ScalarType): Reader {
  if (type === ScalarType.STRING) return readString;
  if (type === ScalarType.BOOL)
    return (json, reading) => (json === "true" || json === "false" ? json : refuseType(reading, json, "true or false"));
  const read = scalarReader(type);
  return (json, reading) => {
    const value = read(json, reading);
    return value === undefined ? undefined : String(value);
  };
}

const readString: Reader = (json, reading) => (typeof json === "string" ? sharedText(json) : refuseType(reading, json, "a text"));

const readBool: Reader = (json, reading) => (typeof json === "boolean" ? json : refuseType(reading, json, "true or false"));

function readBytes(json: unknown, reading: Reading): Uint8Array | undefined {
  if (typeof json !== "string") return refuseType(reading, json, "base64");
  if (!BASE64.test(json)) return refuse(reading, "schema.wrong-type", "must be base64");
  return new Uint8Array(Buffer.from(json, "base64"));
}

function integerReader(least: number, most: number): Reader {
  return (json, reading) => {
    const value = typeof json === "string" && INTEGER.test(json) ? Number(json) : json;
    if (typeof value !== "number" || !Number.isInteger(value)) return refuseType(reading, json, "a whole number");
    return value >= least && value <= most ? value : refuse(reading, "schema.wrong-type", `${value} is outside ${least} to ${most}`);
  };
}

function longReader(least: bigint, most: bigint): Reader {
  return (json, reading) => {
    const whole =
      (typeof json === "string" && INTEGER.test(json)) ||
      (typeof json === "number" && Number.isSafeInteger(json)) ||
      typeof json === "bigint";
    if (!whole) return refuseType(reading, json, "a whole number");
    const value = BigInt(json as string | number | bigint);
    return value >= least && value <= most ? value : refuse(reading, "schema.wrong-type", `${value} is outside ${least} to ${most}`);
  };
}

function readNumber(json: unknown, reading: Reading): number | undefined {
  if (typeof json === "number") return json;
  if (typeof json === "string") {
    if (DECIMAL.test(json)) return Number(json);
    if (Object.hasOwn(SPECIAL_NUMBERS, json)) return SPECIAL_NUMBERS[json];
  }
  return refuseType(reading, json, "a number");
}
