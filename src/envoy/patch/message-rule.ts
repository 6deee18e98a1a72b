import type { DescMessage, Message, MessageShape } from "@bufbuild/protobuf";
import type { Duration } from "@bufbuild/protobuf/wkt";
import type { Fault } from "./fault.ts";

/** What Envoy's code asks of a message beyond the rules that its API carries. */
export interface MessageRule {
  readonly type: string;
  readonly faults: (message: Message) => readonly Fault[];
}

/** A rule for messages of one type: what is wrong with one, in order. */
export const messageRule = <S extends DescMessage>(
  schema: S,
  faults: (message: MessageShape<S>) => readonly (Fault | false)[],
): MessageRule => ({
  type: schema.typeName,
  faults: (message) => faults(message as MessageShape<S>).filter((fault) => fault !== false),
});

/** Whether a name stands in a list twice. */
export const isRepeated = (names: readonly string[]): boolean => new Set(names).size < names.length;

/** Seconds of a duration, or of what Envoy takes where none is given. */
export const secondsOf = (duration: Duration | undefined, otherwise: number): number =>
  duration === undefined ? otherwise : Number(duration.seconds) + duration.nanos / 1e9;
