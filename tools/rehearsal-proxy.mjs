// A sidecar that comes to istiod and comes back to it, as far as tools/rehearsal.mjs needs one.
import { connect } from "node:http2";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

const type = (name) => `type.googleapis.com/envoy.config.${name}`;
/** In the order in which Envoy asks, with the names it would ask for: those of the rehearsal's mesh. */
const ASKED = [
  [type("cluster.v3.Cluster"), []],
  [type("endpoint.v3.ClusterLoadAssignment"), ["v1", "v2", ""].map((subset) => `outbound|80|${subset}|shop.trial.svc.cluster.local`)],
  [type("listener.v3.Listener"), []],
  [type("route.v3.RouteConfiguration"), ["80"]],
];
const SERVER_NAME = "istiod.istio-system.svc";
const PREFIX = 5;

/**
 * Connects to a port of istiod for proxies, asks for everything by delta xDS, and acknowledges what comes until `leaves` resolves. Gives what it then holds:
 * versions by name by type. With that as `held`, it says what a proxy says that comes back. With `credentials` it comes over TLS and shows its token.
 */
export async function visit({ root, port, credentials, leaves, held = new Map() }) {
  const { create, fromBinary, toBinary } = await import("@bufbuild/protobuf");
  const schemas = await import(pathToFileURL(join(root, "src/gen/envoy/service/discovery/v3/discovery_pb.js")).href);
  const session =
    credentials === undefined
      ? connect(`http://127.0.0.1:${port}`)
      : connect(`https://127.0.0.1:${port}`, { ca: credentials.roots, servername: SERVER_NAME });
  const path = "/envoy.service.discovery.v3.AggregatedDiscoveryService/DeltaAggregatedResources";
  const proof = credentials === undefined ? {} : { authorization: `Bearer ${credentials.token}` };
  const stream = session.request({ ":method": "POST", ":path": path, "content-type": "application/grpc", te: "trailers", ...proof });
  const send = (request) =>
    stream.write(framed(toBinary(schemas.DeltaDiscoveryRequestSchema, create(schemas.DeltaDiscoveryRequestSchema, request))));
  for (const [typeUrl, names] of ASKED)
    send({ node: NODE, typeUrl, resourceNamesSubscribe: names, initialResourceVersions: Object.fromEntries(held.get(typeUrl) ?? []) });
  const failed = new Promise((_, reject) => {
    let rest = Buffer.alloc(0);
    stream.on("data", (chunk) => {
      rest = Buffer.concat([rest, chunk]);
      while (rest.length >= PREFIX && rest.length >= PREFIX + rest.readUInt32BE(1)) {
        const end = PREFIX + rest.readUInt32BE(1);
        const { typeUrl, nonce, resources } = fromBinary(schemas.DeltaDiscoveryResponseSchema, rest.subarray(PREFIX, end));
        held.set(typeUrl, new Map([...(held.get(typeUrl) ?? []), ...resources.map(({ name, version }) => [name, version])]));
        send({ typeUrl, responseNonce: nonce });
        rest = rest.subarray(end);
      }
    });
    for (const emitter of [stream, session]) emitter.on("error", reject);
  });
  await Promise.race([leaves, failed]).finally(() => session.destroy());
  return held;
}

/** Who comes. */
export const VISITOR = { namespace: "trial", account: "shop" };

const NODE = {
  id: "sidecar~10.0.0.1~shop.trial~trial.svc.cluster.local",
  cluster: "shop.trial",
  metadata: { NAMESPACE: VISITOR.namespace, LABELS: { app: "shop", version: "v1" }, SERVICE_ACCOUNT: VISITOR.account },
};

function framed(bytes) {
  const prefix = Buffer.alloc(PREFIX);
  prefix.writeUInt32BE(bytes.length, 1);
  return Buffer.concat([prefix, bytes]);
}
