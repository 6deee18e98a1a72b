import type { MessageInitShape } from "@bufbuild/protobuf";
import { durationOfMs } from "../../base/duration.ts";
import type { RetryPolicySchema } from "../../gen/envoy/config/route/v3/route_components_pb.js";
import { PreviousHostsPredicateSchema } from "../../gen/envoy/extensions/retry/host/previous_hosts/v3/previous_hosts_pb.js";
import { PreviousPrioritiesConfigSchema } from "../../gen/envoy/extensions/retry/priority/previous_priorities/v3/previous_priorities_config_pb.js";
import { anyOf } from "../../wire/encode.ts";
import type { RetryInput } from "./route-input.ts";

const PREVIOUS_HOSTS = anyOf(PreviousHostsPredicateSchema, {});
const PREVIOUS_PRIORITIES = anyOf(PreviousPrioritiesConfigSchema, { updateFrequency: 2 });

/** Up to this many other hosts are tried to find one that was not used before. */
const HOST_SELECTION_ATTEMPTS = 5n;

export function retryPolicy(retry: RetryInput): MessageInitShape<typeof RetryPolicySchema> {
  return {
    numRetries: retry.attempts,
    retryOn: retry.retryOn,
    retriableStatusCodes: [...retry.statusCodes],
    hostSelectionRetryMaxAttempts: HOST_SELECTION_ATTEMPTS,
    ...(retry.perTryTimeoutMs !== undefined && { perTryTimeout: durationOfMs(retry.perTryTimeoutMs) }),
    ...(retry.backOffMs !== undefined && { retryBackOff: { baseInterval: durationOfMs(retry.backOffMs) } }),
    ...(retry.avoidPreviousHosts && {
      retryHostPredicate: [
        { name: "envoy.retry_host_predicates.previous_hosts", configType: { case: "typedConfig" as const, value: PREVIOUS_HOSTS } },
      ],
    }),
    ...(retry.otherLocalities && {
      retryPriority: {
        name: "envoy.retry_priorities.previous_priorities",
        configType: { case: "typedConfig" as const, value: PREVIOUS_PRIORITIES },
      },
    }),
  };
}
