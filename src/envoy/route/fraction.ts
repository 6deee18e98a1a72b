import type { MessageInitShape } from "@bufbuild/protobuf";
import { FractionalPercent_DenominatorType as Denominator, type FractionalPercentSchema } from "../../gen/envoy/type/v3/percent_pb.js";
import type { Share } from "./route-input.ts";

export function fractionOf({ numerator, of }: Share): MessageInitShape<typeof FractionalPercentSchema> {
  return { numerator, denominator: of === "million" ? Denominator.MILLION : Denominator.HUNDRED };
}
