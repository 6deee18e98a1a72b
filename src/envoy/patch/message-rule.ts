import type { DescMessage, Message, MessageShape } from "@bufbuild/protobuf";
import type { Duration } from "@bufbuild/protobuf/wkt";

/** What Envoy's code asks of a message beyond the rules that its API carries. Each reason begins with the field it is about. */
export interface MessageRule {
  readonly type: string;
  readonly reasons: (message: Message) => readonly string[];
}

/** A rule for messages of one type: the reasons that hold, in order. */
export const messageRule = <S extends DescMessage>(
  schema: S,
  reasons: (message: MessageShape<S>) => readonly (string | false)[],
): MessageRule => ({
  type: schema.typeName,
  reasons: (message) => reasons(message as MessageShape<S>).filter((reason) => reason !== false),
});

/** Seconds of a duration, or of what Envoy takes where none is given. */
export const secondsOf = (duration: Duration | undefined, otherwise: number): number =>
  duration === undefined ? otherwise : Number(duration.seconds) + duration.nanos / 1e9;
