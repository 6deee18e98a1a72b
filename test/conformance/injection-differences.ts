/** What of an injected pod is otherwise than in Istio, on purpose: the field, and why. Each must occur in the corpus, or it is no difference any more. */
export const MESH_SETTINGS: readonly (readonly [field: RegExp, reason: string])[] = [
  [/\/istio-proxy\/env\/TRUST_DOMAIN\//, "a setting of the mesh: the CA knows it when the certificate is signed"],
  [/\/istio-proxy\/env\/ISTIO_META_MESH_ID\//, "a setting of the mesh: the control plane knows it"],
  [
    /\/istio-proxy\/env\/PROXY_CONFIG\/value!\/(drainDuration|interceptionMode|tracing)/,
    "a setting of the mesh (`defaultConfig`): it comes when the pod runs",
  ],
  [/\/istio-proxy\/env\/ISTIO_ADDRESS\//, "where istiod is, for our agent"],
];

/** Other differences, counted against the agreement. */
export const DIFFERENCES: readonly (readonly [field: RegExp, reason: string])[] = [
  [/\/istio-proxy\/envFrom\//, "variables of the namespace, from the optional ConfigMap istio-env"],
  [
    /^cronjob(-old-version)?: \/(job of a CronJob|metadata)\//,
    "Istio puts labels and annotations on the Job; on the pod they are seen by the kubelet and by us",
  ],
  [/^merge-probers: /, "Istio takes what an earlier injection left for wishes of the user; ours is made anew"],
  [
    /^sidecar-spire: /,
    "Istio adds a second container istio-proxy without an image, which Kubernetes refuses; ours changes the one there is",
  ],
];
