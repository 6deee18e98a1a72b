import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { type StatsConfig, StatsConfigSchema } from "../../gen/envoy/config/metrics/v3/stats_pb.js";
import type { StringMatcherSchema } from "../../gen/envoy/type/matcher/v3/string_pb.js";
import { literal } from "../filters/rbac/text-pattern.ts";

/** Which statistics an Envoy keeps, and how their names become labels. */
export interface StatsInput {
  /** Further labels: what stands after `tag=.=` in a name. */
  readonly tags: readonly string[];
  /** Statistics to keep besides those that are always kept, by beginning, end and pattern of their names. */
  readonly prefixes: readonly string[];
  readonly suffixes: readonly string[];
  readonly regexps: readonly string[];
  readonly buckets: readonly { readonly prefix: string; readonly limits: readonly number[] }[];
}

/** How names become labels; clusters and connection managers end their part of a name with a semicolon, since it may have dots. */
const TAGS_BEFORE: readonly (readonly [string, string])[] = [
  ["cluster_name", "^cluster(\\.(.+);)"],
  ["http_conn_manager_prefix", "^http\\.(((?:[_.[:digit:]\\w]*|[_\\[\\]aAbBcCdDeEfF[:digit:]\\w\\:]*));\\.)"],
  ["thread_name", "^server(\\.(.+))\\.watchdog"],
  ["tcp_prefix", "^tcp\\.((.*?)\\.)\\w+?$"],
  ["response_code", "_rq(_(\\d{3}))$"],
  ["response_code_class", "_rq(_(\\dxx))$"],
  ["http_conn_manager_listener_prefix", "^listener(?=\\.).*?\\.http\\.(((?:[_.[:digit:]]*|[_\\[\\]aAbBcCdDeEfF[:digit:]]*))\\.)"],
  ["listener_address", "^listener\\.(((?:[_.[:digit:]]*|[_\\[\\]aAbBcCdDeEfF[:digit:]]*))\\.)"],
  ["mongo_prefix", "^mongo\\.(.+?)\\.(collection|cmd|cx_|op_|delays_|decoding_)(.*?)$"],
];
const TAGS_AFTER: readonly (readonly [string, string])[] = [
  ["cache", "(cache\\.(.+?)\\.)"],
  ["component", "(component\\.(.+?)\\.)"],
  ["tag", "(tag\\.(.+?);\\.)"],
  ["wasm_filter", "(wasm_filter\\.(.+?)\\.)"],
  ["authz_enforce_result", "rbac(\\.(allowed|denied))"],
  ["authz_dry_run_action", "(\\.istio_dry_run_(allow|deny)_)"],
  ["authz_dry_run_result", "(\\.shadow_(allowed|denied))"],
];

type Pattern = MessageInitShape<typeof StringMatcherSchema>;

/** The statistics of one Envoy. All others are not kept: tens of thousands of counters nobody reads cost memory. */
export function buildStatsConfig(input: StatsInput): StatsConfig {
  const extra = input.tags.map((tag) => [tag, `(${literal(tag)}=\\.=(.*?);\\.;)`] as const);
  const patterns: readonly Pattern[] = [
    prefix("reporter="),
    ...input.prefixes.map(prefix),
    ...input.suffixes.map((value): Pattern => ({ matchPattern: { case: "suffix", value } })),
    ...input.regexps.map((regex): Pattern => ({ matchPattern: { case: "safeRegex", value: { regex } } })),
    prefix("component"),
    prefix("istio"),
  ];
  return create(StatsConfigSchema, {
    useAllDefaultTags: false,
    statsTags: [...TAGS_BEFORE, ...extra, ...TAGS_AFTER].map(([tagName, value]) => ({
      tagName,
      tagValue: { case: "regex" as const, value },
    })),
    statsMatcher: { statsMatcher: { case: "inclusionList", value: { patterns: [...patterns] } } },
    histogramBucketSettings: input.buckets.map((bucket) => ({
      match: prefix(bucket.prefix),
      buckets: [...bucket.limits],
    })),
  });
}

const prefix = (value: string): Pattern => ({ matchPattern: { case: "prefix", value } });
