import type { JsonObject } from "@bufbuild/protobuf";
import type { Doc } from "./doc.ts";
import type { WideMesh } from "./wide-mesh.ts";

const doc = (kind: string, name: string, spec: JsonObject): Doc => ({
  apiVersion: "networking.istio.io/v1",
  kind,
  metadata: { name, namespace: "a" },
  spec,
});

const EAST_WEST = doc("Gateway", "edge-0", {
  selector: { app: "edge" },
  servers: [{ port: { number: 443, name: "tls", protocol: "TLS" }, hosts: ["*"], tls: { mode: "AUTO_PASSTHROUGH" } }],
});

/** Meshes of which something went wrong once, as small as they could be made. */
const KNOWN: readonly (readonly Doc[])[] = [
  // A chain for a service whose host is a wildcard had a server name that Envoy refuses, and the listener with it.
  [
    EAST_WEST,
    doc("ServiceEntry", "wild", {
      ...{ hosts: ["*.wild.test"], location: "MESH_INTERNAL", resolution: "NONE" },
      ports: [{ number: 80, name: "http", protocol: "HTTP" }],
    }),
  ],
  // A locality of which no endpoint is used was named beside the only one that a logical DNS cluster may have.
  [
    EAST_WEST,
    doc("ServiceEntry", "inside", {
      ...{ hosts: ["h1.test"], location: "MESH_INTERNAL", resolution: "DNS_ROUND_ROBIN" },
      ports: [{ number: 444, name: "https", protocol: "HTTPS" }],
      endpoints: [{ address: "dns-1.test", locality: "r1/z1/s1", serviceAccount: "account" }],
    }),
    doc("ServiceEntry", "outside", {
      ...{ hosts: ["h1.test"], location: "MESH_EXTERNAL", resolution: "DNS_ROUND_ROBIN" },
      ports: [{ number: 444, name: "https", protocol: "HTTPS" }],
    }),
  ],
];

export const KNOWN_MESHES: readonly WideMesh[] = KNOWN.map((docs) => ({ docs, mesh: {} }));
