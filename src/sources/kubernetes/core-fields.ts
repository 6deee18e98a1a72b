import { type FieldSpec, type FieldSpecs, type ObjectFields, objectFields } from "../../kube/proto-fields.ts";

// What is read of kinds of Kubernetes' own that there are many of, or that hold much that nobody reads. The numbers are those of Kubernetes' protobuf
// (`generated.proto` of k8s.io/api), which never change.

/** What `shapeCore` itself reads, and the reflector. */
const METADATA: FieldSpec = {
  at: 1,
  of: {
    name: { at: 1 },
    namespace: { at: 3 },
    uid: { at: 5 },
    resourceVersion: { at: 6 },
    creationTimestamp: { at: 8, is: "time" },
    deletionTimestamp: { at: 9, is: "time" },
    labels: { at: 11, is: "map" },
    annotations: { at: 12, is: "map" },
  },
};

const CONTAINER_PORT: FieldSpecs = { name: { at: 1 }, containerPort: { at: 3, is: "int" }, protocol: { at: 4 } };

const CONTAINER: FieldSpecs = {
  name: { at: 1 },
  ports: { at: 6, repeated: true, of: CONTAINER_PORT },
  restartPolicy: { at: 24, zero: true },
};

/** What `podPart` reads. */
const POD: FieldSpecs = {
  spec: {
    at: 2,
    of: {
      containers: { at: 2, repeated: true, of: CONTAINER },
      initContainers: { at: 20, repeated: true, of: CONTAINER },
      serviceAccountName: { at: 8 },
      nodeName: { at: 10 },
      hostNetwork: { at: 11, is: "bool" },
      hostname: { at: 16 },
      subdomain: { at: 17 },
    },
  },
  status: {
    at: 3,
    of: {
      phase: { at: 1 },
      conditions: { at: 2, repeated: true, of: { type: { at: 1 }, status: { at: 2 } } },
      podIP: { at: 6 },
      podIPs: { at: 12, repeated: true, of: { ip: { at: 1 } } },
    },
  },
};

/** What `servicePart` reads. */
const SERVICE: FieldSpecs = {
  spec: {
    at: 2,
    of: {
      ports: {
        at: 1,
        repeated: true,
        of: {
          name: { at: 1 },
          protocol: { at: 2 },
          port: { at: 3, is: "int", zero: true },
          targetPort: { at: 4, is: "intOrString", zero: true },
          nodePort: { at: 5, is: "int" },
          appProtocol: { at: 6, zero: true },
        },
      },
      selector: { at: 2, is: "map" },
      clusterIP: { at: 3 },
      type: { at: 4 },
      externalIPs: { at: 5, repeated: true },
      sessionAffinity: { at: 7 },
      externalName: { at: 10 },
      externalTrafficPolicy: { at: 11 },
      publishNotReadyAddresses: { at: 13, is: "bool" },
      clusterIPs: { at: 18, repeated: true },
      internalTrafficPolicy: { at: 22, zero: true },
      trafficDistribution: { at: 23, zero: true },
    },
  },
  status: {
    at: 3,
    of: { loadBalancer: { at: 1, of: { ingress: { at: 1, repeated: true, of: { ip: { at: 1 }, hostname: { at: 2 } } } } } },
  },
};

const ENDPOINT: FieldSpecs = {
  addresses: { at: 1, repeated: true },
  conditions: {
    at: 2,
    of: {
      ready: { at: 1, is: "bool", zero: true },
      serving: { at: 2, is: "bool", zero: true },
      terminating: { at: 3, is: "bool", zero: true },
    },
  },
  hostname: { at: 3, zero: true },
  targetRef: { at: 4, of: { kind: { at: 1 }, namespace: { at: 2 }, name: { at: 3 } } },
  nodeName: { at: 6, zero: true },
  zone: { at: 7, zero: true },
};

/** What `slicePart` reads. */
const SLICE: FieldSpecs = {
  endpoints: { at: 2, repeated: true, of: ENDPOINT },
  ports: {
    at: 3,
    repeated: true,
    of: {
      name: { at: 1, zero: true },
      protocol: { at: 2, zero: true },
      port: { at: 3, is: "int", zero: true },
      appProtocol: { at: 4, zero: true },
    },
  },
  addressType: { at: 4 },
};

/** What `nodePart` reads. */
const NODE: FieldSpecs = {
  status: {
    at: 3,
    of: {
      addresses: { at: 5, repeated: true, of: { type: { at: 1 }, address: { at: 2 } } },
      nodeInfo: { at: 7, of: { kubeletVersion: { at: 7, zero: true } } },
    },
  },
};

export const POD_FIELDS: ObjectFields = objectFields({ metadata: METADATA, ...POD });
export const SERVICE_FIELDS: ObjectFields = objectFields({ metadata: METADATA, ...SERVICE });
export const SLICE_FIELDS: ObjectFields = objectFields({ metadata: METADATA, ...SLICE });
export const NODE_FIELDS: ObjectFields = objectFields({ metadata: METADATA, ...NODE });
export const METADATA_FIELDS: ObjectFields = objectFields({ metadata: METADATA });
