import { ScalarType } from "@bufbuild/protobuf";
import type { TailBuffer } from "./tail-buffer.ts";

/** How values of one scalar type are written. */
export interface ScalarWriter {
  readonly wireType: 0 | 1 | 2 | 5;
  /** Writes the value alone, without tag. Throws where it is none of its type. */
  readonly write: (out: TailBuffer, value: never) => void;
  /** The value that is not written where it says nothing. */
  readonly isZero: (value: never) => boolean;
}

const UINT32_MAX = 0xffff_ffff;
const INT32_MAX = 0x7fff_ffff;
const INT32_MIN = -0x8000_0000;
const FLOAT_MAX = 3.4028234663852886e38;
const BITS = 64;

type Long = bigint | number | string;

const isNought = (value: Long): boolean => value === 0 || value === 0n || value === "0";
const isPositiveZero = (value: number): boolean => Object.is(value, 0);

const WRITERS: Readonly<Record<ScalarType, ScalarWriter>> = {
  [ScalarType.STRING]: { wireType: 2, write: (out, value: string) => out.text(value), isZero: (value: string) => value === "" },
  [ScalarType.BYTES]: { wireType: 2, write: writeBytes, isZero: (value: Uint8Array) => value.length === 0 },
  [ScalarType.BOOL]: { wireType: 0, write: (out, value: boolean) => out.byte(value ? 1 : 0), isZero: (value: boolean) => !value },
  [ScalarType.UINT32]: { wireType: 0, write: (out, value: number) => out.varint(uint32(value)), isZero: isNought },
  [ScalarType.INT32]: { wireType: 0, write: writeInt32, isZero: isNought },
  [ScalarType.SINT32]: { wireType: 0, write: (out, value: number) => out.varint(zigzag(int32(value))), isZero: isNought },
  [ScalarType.UINT64]: { wireType: 0, write: writeUint64, isZero: isNought },
  [ScalarType.INT64]: { wireType: 0, write: writeInt64, isZero: isNought },
  [ScalarType.SINT64]: { wireType: 0, write: (out, value: Long) => out.varint64(zigzag64(int64(value))), isZero: isNought },
  [ScalarType.FIXED32]: { wireType: 5, write: (out, value: number) => out.fixed32(uint32(value)), isZero: isNought },
  [ScalarType.SFIXED32]: { wireType: 5, write: (out, value: number) => out.fixed32(int32(value)), isZero: isNought },
  [ScalarType.FIXED64]: { wireType: 1, write: (out, value: Long) => out.fixed64(uint64(value)), isZero: isNought },
  [ScalarType.SFIXED64]: { wireType: 1, write: (out, value: Long) => out.fixed64(BigInt.asUintN(BITS, int64(value))), isZero: isNought },
  [ScalarType.FLOAT]: { wireType: 5, write: (out, value: number) => out.float(float(value)), isZero: isPositiveZero },
  [ScalarType.DOUBLE]: { wireType: 1, write: (out, value: number) => out.double(value), isZero: isPositiveZero },
};

/** The writer of a type. */
export const scalarWriter = (type: ScalarType): ScalarWriter => WRITERS[type];

function writeBytes(out: TailBuffer, value: Uint8Array): void {
  out.raw(value);
  out.varint(value.length);
}

/** A negative number takes ten bytes, as one of 64 bits does. */
function writeInt32(out: TailBuffer, value: number): void {
  if (int32(value) < 0) out.varint64(BigInt.asUintN(BITS, BigInt(value)));
  else out.varint(value);
}

function writeUint64(out: TailBuffer, value: Long): void {
  const small = Number(value);
  if (small >= 0 && small <= UINT32_MAX) out.varint(uint32(small));
  else out.varint64(uint64(value));
}

function writeInt64(out: TailBuffer, value: Long): void {
  const small = Number(value);
  if (small >= 0 && small <= UINT32_MAX) out.varint(uint32(small));
  else out.varint64(BigInt.asUintN(BITS, int64(value)));
}

/** The number, if it is one that an unsigned field of 32 bits can hold. */
export function uint32(value: number): number {
  if (!Number.isInteger(value) || value < 0 || value > UINT32_MAX) throw new RangeError(`${value} is no unsigned number of 32 bits`);
  return value;
}

function int32(value: number): number {
  if (!Number.isInteger(value) || value < INT32_MIN || value > INT32_MAX) throw new RangeError(`${value} is no number of 32 bits`);
  return value;
}

function uint64(value: Long): bigint {
  const number = BigInt(value);
  if (BigInt.asUintN(BITS, number) !== number) throw new RangeError(`${value} is no unsigned number of 64 bits`);
  return number;
}

function int64(value: Long): bigint {
  const number = BigInt(value);
  if (BigInt.asIntN(BITS, number) !== number) throw new RangeError(`${value} is no number of 64 bits`);
  return number;
}

function float(value: number): number {
  if (Number.isFinite(value) && Math.abs(value) > FLOAT_MAX) throw new RangeError(`${value} is too large for a float`);
  return value;
}

const zigzag = (value: number): number => ((value << 1) ^ (value >> 31)) >>> 0;

const zigzag64 = (value: bigint): bigint => BigInt.asUintN(BITS, (value << 1n) ^ (value >> 63n));
