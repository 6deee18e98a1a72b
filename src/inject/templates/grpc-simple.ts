import { ANNOTATION } from "../annotations.ts";
import type { PodOverlay } from "../pod.ts";
import type { TemplateInput } from "../template-input.ts";
import { field, text } from "./proxy-environment.ts";
import { mount } from "./proxy-volumes.ts";

const VOLUME = "grpc-io-proxyless-bootstrap";
const DIRECTORY = "/var/lib/grpc/data/";
const FILE = `${DIRECTORY}bootstrap.json`;

/**
 * Applications whose gRPC library asks istiod itself, in plaintext and without an agent: for trying things out. An init container writes the
 * library's bootstrap, since only there the pod's address is known.
 */
export function grpcSimpleTemplate({ pod, values }: TemplateInput): PodOverlay {
  return {
    metadata: { annotations: { [ANNOTATION.rewriteProbes]: "false" } },
    spec: {
      initContainers: [
        {
          name: "grpc-bootstrap-init",
          image: "busybox:1.28",
          command: ["sh", "-c", SCRIPT],
          env: [
            field("INSTANCE_IP", "status.podIP"),
            field("POD_NAME", "metadata.name"),
            field("POD_NAMESPACE", "metadata.namespace"),
            text("ISTIO_NAMESPACE", values.global.istioNamespace),
          ],
          volumeMounts: [mount(VOLUME, DIRECTORY)],
        },
      ],
      containers: (pod.spec.containers ?? []).map(({ name }) => ({
        name,
        env: [text("GRPC_XDS_BOOTSTRAP", FILE), text("GRPC_GO_LOG_VERBOSITY_LEVEL", "99"), text("GRPC_GO_LOG_SEVERITY_LEVEL", "info")],
        volumeMounts: [mount(VOLUME, DIRECTORY)],
      })),
      volumes: [{ name: VOLUME, emptyDir: {} }],
    },
  };
}

const BOOTSTRAP = {
  xds_servers: [{ server_uri: "dns:///istiod.%s.svc:15010", channel_creds: [{ type: "insecure" }], server_features: ["xds_v3"] }],
  node: { id: "sidecar~%s~%s.%s~cluster.local", metadata: { GENERATOR: "grpc" } },
};

const SCRIPT = `printf '${JSON.stringify(BOOTSTRAP)}' "$ISTIO_NAMESPACE" "$INSTANCE_IP" "$POD_NAME" "$POD_NAMESPACE" > ${FILE}`;
