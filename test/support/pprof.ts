import { gunzipSync } from "node:zlib";
import { BinaryReader } from "@bufbuild/protobuf/wire";

/** The fields of a message by number; numbers as they are, the rest as bytes. */
function fieldsOf(bytes: Uint8Array): ReadonlyMap<number, readonly (number | Uint8Array)[]> {
  const reader = new BinaryReader(bytes);
  const fields = new Map<number, (number | Uint8Array)[]>();
  while (reader.pos < reader.len) {
    const [field, wireType] = reader.tag();
    fields.set(field, [...(fields.get(field) ?? []), wireType === 0 ? Number(reader.uint64()) : reader.bytes()]);
  }
  return fields;
}

const bytesOf = (fields: ReadonlyMap<number, readonly (number | Uint8Array)[]>, field: number): readonly Uint8Array[] =>
  (fields.get(field) ?? []).filter((value) => typeof value !== "number");
const numbersOf = (fields: ReadonlyMap<number, readonly (number | Uint8Array)[]>, field: number): readonly number[] =>
  (fields.get(field) ?? []).filter((value) => typeof value === "number");

/** What a profile for `go tool pprof` says: its types, and of each sample the names of its functions, the innermost first. */
export function readProfile(compressed: Buffer) {
  const profile = fieldsOf(gunzipSync(compressed));
  const texts = bytesOf(profile, 6).map((bytes) => Buffer.from(bytes).toString());
  const byId = (field: number) => new Map(bytesOf(profile, field).map((bytes) => [numbersOf(fieldsOf(bytes), 1)[0], fieldsOf(bytes)]));
  const [locations, functions] = [byId(4), byId(5)];
  const nameOf = (location: number): string => {
    const [line = new Uint8Array()] = bytesOf(locations.get(location) ?? new Map(), 4);
    const [name = 0] = numbersOf(functions.get(numbersOf(fieldsOf(line), 1)[0]) ?? new Map(), 2);
    return texts[name] ?? "";
  };
  return {
    firstText: texts[0],
    types: bytesOf(profile, 1).map((bytes) => [1, 2].map((field) => texts[numbersOf(fieldsOf(bytes), field)[0] ?? 0]).join(" in ")),
    durationNanos: numbersOf(profile, 10)[0] ?? 0,
    samples: bytesOf(profile, 2).map((bytes) => ({
      stack: numbersOf(fieldsOf(bytes), 1).map(nameOf),
      values: numbersOf(fieldsOf(bytes), 2),
    })),
  };
}
