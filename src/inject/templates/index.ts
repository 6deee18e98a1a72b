import type { BuiltInTemplate } from "../template-input.ts";
import { gatewayTemplate } from "./gateway.ts";
import { grpcAgentTemplate } from "./grpc-agent.ts";
import { grpcSimpleTemplate } from "./grpc-simple.ts";
import { sidecarTemplate } from "./sidecar.ts";

/** Templates that are always there, by the names that `inject.istio.io/templates` takes. */
export const BUILT_IN_TEMPLATES: Readonly<Record<string, BuiltInTemplate>> = {
  sidecar: sidecarTemplate,
  gateway: gatewayTemplate,
  "grpc-agent": grpcAgentTemplate,
  "grpc-simple": grpcSimpleTemplate,
};
