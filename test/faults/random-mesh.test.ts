import { create } from "@bufbuild/protobuf";
import fc from "fast-check";
import { expect, it } from "vitest";
import { NodeSchema } from "../../src/gen/envoy/config/core/v3/base_pb.js";
import { textOf } from "../properties/doc.ts";
import { randomDocs, type Writer } from "../properties/random-mesh.ts";
import { assertEnvoyAcceptsAll, type Offer } from "../support/envoy-validate.ts";
import { holds } from "../support/holds.ts";
import { type MeshParts, meshOf } from "../support/mesh-from.ts";

const HOSTS = ["h0.test", "h1.test", "*.wild.test"];
const WRITER: Writer = {
  ...{ namespace: "a", mark: "own", net: "10.1", created: ["2026-01-01"], exportTo: [undefined, ["."]] },
  ...{ hosts: HOSTS, declares: HOSTS, delegates: ["a/own-delegate-0"] },
};
const EDGE = `
apiVersion: networking.istio.io/v1
kind: Gateway
metadata: {name: edge, namespace: a}
spec: {selector: {app: edge}, servers: [{port: {number: 80, name: http, protocol: HTTP}, hosts: ["*"]}, {port: {number: 5000, name: tcp, protocol: TCP}, hosts: ["*"]}]}
`;
const node = (type: string, app: string): MeshParts["nodes"][number] => ({
  name: `${type}-${app}`,
  node: create(NodeSchema, { id: `${type}~10.1.9.9~${app}.a~a.svc.cluster.local`, metadata: { NAMESPACE: "a", LABELS: { app } } }),
});
const NODES = [node("sidecar", "web"), node("sidecar", "plain"), node("router", "edge")];

const MESHES = 24;

it("Envoy accepts what is made of any configuration, and the same is made of it again", async () => {
  const offers: Offer[] = [];
  await holds(
    fc.asyncProperty(randomDocs(WRITER), async (docs) => {
      const made = async () => {
        const mesh = meshOf({ documents: [EDGE, textOf(docs)], nodes: NODES });
        return Promise.all(
          mesh.proxies.map(async (proxy) => ({ label: `${proxy.name} with ${textOf(docs)}`, resources: await mesh.resources(proxy) })),
        );
      };
      const [once, again] = [await made(), await made()];
      expect(again.map(versionsOf)).toEqual(once.map(versionsOf));
      offers.push(...once);
    }),
    { numRuns: MESHES },
  );
  await assertEnvoyAcceptsAll(offers);
});

const versionsOf = ({ resources }: Offer): readonly string[] =>
  [...resources].flatMap(([typeUrl, set]) => [...set.resources.values()].map(({ name, version }) => `${typeUrl} ${name} ${version}`));
