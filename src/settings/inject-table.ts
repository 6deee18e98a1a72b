import type { SettingDef } from "./setting-def.ts";

/** Variables of the control plane that are about injection and admission. */
export const INJECT_SETTINGS = {
  nativeSidecars: {
    env: "ENABLE_NATIVE_SIDECARS",
    type: "choice",
    choices: ["auto", "true", "false"],
    default: "auto",
    restart: true,
    about: "Inject the proxy as a native sidecar: `auto` where every node (or the pod's own) runs Kubernetes 1.29 or newer.",
  },
  injectEnabled: {
    env: "INJECT_ENABLED",
    type: "bool",
    default: "true",
    restart: true,
    about: "Serve the injection webhook; `services.inject` of mesh.yaml does the same.",
  },
  platform: {
    env: "PLATFORM",
    type: "string",
    default: "",
    restart: true,
    about: "Where pods run: `openshift` gives the proxy a user of its namespace's range.",
  },
  compliancePolicy: {
    env: "COMPLIANCE_POLICY",
    type: "string",
    default: "",
    restart: true,
    about: "Passed on to injected proxies: `fips-140-2` keeps calls by Google's gRPC at TLS 1.2 there, and nothing else.",
  },
  injectorName: {
    env: "INJECTION_WEBHOOK_CONFIG_NAME",
    type: "string",
    default: "istio-sidecar-injector",
    restart: true,
    about: "MutatingWebhookConfiguration that is created and kept current for the default revision.",
  },
  validatorName: {
    env: "VALIDATION_WEBHOOK_CONFIG_NAME",
    type: "string",
    default: undefined,
    restart: true,
    about: "ValidatingWebhookConfiguration that is created and kept current; unset means `istio-validator-<namespace>`, empty none.",
  },
  webhookUrl: {
    env: "ISTIO_WEBHOOK_URL",
    type: "string",
    default: "",
    restart: true,
    own: true,
    about: "Where the API server reaches the webhooks (`https://host:15017`); empty means the Service `istiod` of this revision.",
  },
} as const satisfies Record<string, SettingDef>;
