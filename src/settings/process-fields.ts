import type { Shaped } from "./shape.ts";

const address = <const D extends string>(fallback: D, about: string) =>
  ({ is: "text", format: "address", default: fallback, restart: true, about }) as const;
const service = (about: string) => ({ is: "flag", default: true, restart: true, about }) as const;
const text = (about: string) => ({ is: "text", about }) as const;

/**
 * Fields of mesh.yaml that configure the process and are not part of Istio's MeshConfig. `ca` and `configSources` are: they are read with it.
 */
export const PROCESS_FIELDS = {
  is: "group",
  about: "Settings of the control plane process itself.",
  fields: {
    listen: {
      is: "group",
      about: "Addresses to listen on; an empty one turns the port off. The environment variables of the same name win.",
      fields: {
        grpcAddr: { ...address("127.0.0.1:15010", "xDS in plaintext (GRPC_ADDR). Off in a pod unless set."), defaultInPod: "" },
        secureGrpcAddr: address(":15012", "xDS, CA, SDS and MCP over TLS (SECURE_GRPC_ADDR)."),
        legacyGrpcAddr: address(":15011", "The same under an older number, with `sidecar: true` only (LEGACY_GRPC_ADDR)."),
        httpsAddr: address(":15017", "Webhooks, only with Kubernetes (HTTPS_ADDR)."),
        httpAddr: address(":8080", "Readiness, debug pages and dashboard (HTTP_ADDR)."),
        monitoringAddr: address(":15014", "Metrics, version and debug pages (MONITORING_ADDR)."),
      },
    },
    services: {
      is: "group",
      about: "Parts of the control plane to run. A part that is off opens no port and creates nothing.",
      fields: {
        xds: service("Serve configuration to proxies."),
        ca: service("Sign certificates."),
        inject: service("Inject sidecars into pods."),
        validate: service("Judge objects at admission."),
        mcp: service("Pass configuration on to other control planes."),
        operator: service("Keep the installation as its description says."),
      },
    },
    tokenIssuers: {
      is: "list",
      about: "Who may vouch for workloads besides Kubernetes and istiod itself.",
      of: {
        is: "group",
        about: "One OIDC issuer. Its keys come from its discovery document unless one of jwksUri, jwksFile and jwks is set.",
        oneOf: ["jwksUri", "jwksFile", "jwks"],
        fields: {
          issuer: { is: "text", required: true, about: "The `iss` claim of its tokens." },
          jwksUri: { is: "text", format: "url", about: "Where its keys are published." },
          jwksFile: text("File with its keys, relative to the base directory."),
          jwks: { is: "text", format: "keySet", about: "Its keys, inline." },
          audiences: {
            is: "list",
            about: "Audiences of which a token must name one.",
            of: { is: "text", required: true, about: "An audience." },
          },
          identity: {
            is: "group",
            about: "Claims (dotted paths) that say who the workload is.",
            fields: { namespace: text("Claim that holds the namespace."), serviceAccount: text("Claim that holds the service account.") },
          },
        },
      },
    },
    vault: {
      is: "group",
      about: "A Vault server that credentials (`credentialName`) come from which no Secret object holds: the KV engine, version 2.",
      fields: {
        address: {
          is: "text",
          format: "url",
          restart: true,
          about: "Where it is, e.g. https://vault.example.com:8200; without it none is asked.",
        },
        mount: { is: "text", default: "secret", restart: true, about: "Where the engine is mounted." },
        path: {
          is: "text",
          default: "istio/{namespace}/{name}",
          restart: true,
          about: "Path of a credential below the mount. It holds what a Secret would: tls.crt and tls.key, ca.crt …",
        },
        namespace: { is: "text", default: "", restart: true, about: "Namespace of Vault Enterprise; empty for none." },
        tokenFile: {
          is: "text",
          restart: true,
          about: "File with the token, relative to the base directory, read anew for each question; without it VAULT_TOKEN counts.",
        },
        caCertificates: {
          is: "text",
          restart: true,
          about: "File with the roots that its certificate is verified with, relative to the base directory; without it the platform's.",
        },
      },
    },
    sidecar: {
      is: "flag",
      default: false,
      restart: true,
      about: "Serve gRPC on a Unix socket only, and start an Envoy that owns the TLS ports.",
    },
    namespaces: {
      is: "list",
      restart: true,
      about: "Look at these namespaces only; empty means all.",
      of: { is: "text", required: true, about: "A namespace." },
    },
    clusterWrites: {
      is: "flag",
      default: false,
      defaultInPod: true,
      restart: true,
      about: "Write to the Kubernetes cluster (status, roots, webhooks), not only read it. On by default in a pod.",
    },
    env: { is: "dict", about: "Settings usually given as environment variables; the real environment wins." },
  },
} as const;

/** What mesh.yaml says about the process, complete with defaults. */
export type ProcessFields = Shaped<typeof PROCESS_FIELDS>;
