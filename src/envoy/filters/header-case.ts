import { create } from "@bufbuild/protobuf";
import { PreserveCaseFormatterConfigSchema } from "../../gen/envoy/extensions/http/header_formatters/preserve_case/v3/preserve_case_pb.js";
import { anyOf } from "../../wire/encode.ts";

/** Keeps the spelling of HTTP/1 header names, which Envoy otherwise lower-cases. Both sides of a proxy must be told. */
export const PRESERVE_CASE = {
  headerFormat: {
    case: "statefulFormatter",
    value: {
      name: "preserve_case",
      typedConfig: anyOf(PreserveCaseFormatterConfigSchema, create(PreserveCaseFormatterConfigSchema)),
    },
  },
} as const;
