import { bytesField, messageField, numberField } from "../wire/field-writer.ts";

/** A function as V8 names it; lines and columns count from 0. */
export interface CallFrame {
  readonly functionName: string;
  readonly url: string;
  readonly lineNumber: number;
  readonly columnNumber: number;
}

/** What was measured at one place: the functions that were running there, the innermost first, and the values in order of the profile's types. */
export interface Sample {
  readonly stack: readonly CallFrame[];
  readonly values: readonly number[];
}

/** What a profile tells. Values are whole and above 0. */
export interface Profile {
  /** What the values are: `cpu` in `nanoseconds`. The last one is what readers show first. */
  readonly types: readonly ValueType[];
  readonly samples: readonly Sample[];
  /** In ms since the epoch. */
  readonly startedAt: number;
  readonly durationMs: number;
  /** What is between two samples. */
  readonly period: ValueType & { readonly value: number };
}

export interface ValueType {
  readonly type: string;
  readonly unit: string;
}

const NANOSECONDS = 1_000_000;

/**
 * A profile in the format that `go tool pprof` and others open (https://github.com/google/pprof/blob/main/proto/profile.proto), not compressed yet. Written by hand, field by
 * field: it is the one message of its kind.
 */
export function pprofBytes({ types, samples, startedAt, durationMs, period }: Profile): Buffer {
  const texts = numbering<string>();
  const functions = numbering<string>();
  const frames: Buffer[] = [];
  const text = (value: string): number => texts.of(value) - 1;
  text("");
  const valueType = (field: number, { type, unit }: ValueType): Buffer =>
    messageField(field, [numberField(1, text(type)), numberField(2, text(unit))]);
  const locationOf = (frame: CallFrame): number => {
    const before = functions.size;
    const id = functions.of(`${frame.url}:${frame.lineNumber}:${frame.columnNumber}:${frame.functionName}`);
    if (functions.size > before) frames.push(location(id), functionField(id, frame, text));
    return id;
  };
  const body = [
    ...types.map((type) => valueType(1, type)),
    ...samples.map(({ stack, values }) =>
      messageField(2, [...stack.map((frame) => numberField(1, locationOf(frame))), ...values.map((value) => numberField(2, value))]),
    ),
    messageField(3, [numberField(1, 1), numberField(7, 1)]),
    numberField(9, startedAt * NANOSECONDS),
    numberField(10, Math.round(durationMs * NANOSECONDS)),
    valueType(11, period),
    numberField(12, period.value),
  ];
  return Buffer.concat([...body, ...frames, ...texts.all().map((value) => bytesField(6, Buffer.from(value)))]);
}

/** A place in a function: we know functions only, so there is one of each, in the one mapping there is. */
const location = (id: number): Buffer => messageField(4, [numberField(1, id), numberField(2, 1), messageField(4, [numberField(1, id)])]);

function functionField(id: number, { functionName, url, lineNumber, columnNumber }: CallFrame, text: (value: string) => number): Buffer {
  const name = text(functionName === "" ? `(anonymous):${lineNumber + 1}:${columnNumber + 1}` : functionName);
  return messageField(5, [
    numberField(1, id),
    numberField(2, name),
    numberField(3, name),
    numberField(4, text(url)),
    numberField(5, Math.max(lineNumber + 1, 0)),
  ]);
}

/** Numbers things from 1 in the order in which they come. */
function numbering<T>(): { of(one: T): number; all(): readonly T[]; readonly size: number } {
  const ids = new Map<T, number>();
  return {
    of(one) {
      const id = ids.get(one) ?? ids.size + 1;
      ids.set(one, id);
      return id;
    },
    all: () => [...ids.keys()],
    get size() {
      return ids.size;
    },
  };
}
