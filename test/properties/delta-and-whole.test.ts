import fc from "fast-check";
import { beforeEach, describe, expect, it } from "vitest";
import { silentLog } from "../../src/base/log.ts";
import type { Node } from "../../src/gen/envoy/config/core/v3/base_pb.js";
import { readNode } from "../../src/generate/proxy-view.ts";
import type { ProxyView } from "../../src/model/proxy.ts";
import type { DiscoveryVariant } from "../../src/wire/discovery-stream.ts";
import type { Encoded, ResourceSet } from "../../src/wire/encoded.ts";
import {
  CLUSTER_TYPE,
  ENDPOINT_TYPE,
  EXTENSION_CONFIG_TYPE,
  LISTENER_TYPE,
  NAME_TABLE_TYPE,
  ROUTE_TYPE,
  SECRET_TYPE,
  VIRTUAL_HOST_TYPE,
} from "../../src/wire/type-urls.ts";
import { createXdsServer, type XdsServer } from "../../src/xds/server.ts";
import { createCertificateIssuer, type Issued, tlsSecret } from "../support/certificates.ts";
import { holds } from "../support/holds.ts";
import { manualClock } from "../support/manual-clock.ts";
import { meshOf, type TestMesh } from "../support/mesh-from.ts";
import { comparableTables } from "../support/whole-table.ts";
import { type Doc, keyOf, textOf } from "./doc.ts";
import { PROVIDERS } from "./kinds/policies.ts";
import { ProtocolClient, WHOLE } from "./protocol-client.ts";
import { randomDocs, type Writer } from "./random-mesh.ts";
import { WIDE_NODES, wideDocs } from "./wide-mesh.ts";

const HOSTS = ["h0.test", "h1.test", "*.wild.test"];
const WRITER: Writer = {
  ...{ namespace: "a", mark: "own", net: "10.1", created: ["2026-01-01"], exportTo: [undefined, ["."]] },
  ...{ hosts: HOSTS, declares: HOSTS, delegates: ["a/own-delegate-0"] },
};
const TYPES = [
  CLUSTER_TYPE,
  ENDPOINT_TYPE,
  LISTENER_TYPE,
  ROUTE_TYPE,
  VIRTUAL_HOST_TYPE,
  EXTENSION_CONFIG_TYPE,
  NAME_TABLE_TYPE,
  SECRET_TYPE,
];
/** What a proxy may ask for, whether or not it is there or for that proxy. */
const SECRETS = [
  "kubernetes://cert",
  "kubernetes://cert-cacert",
  "kubernetes://other",
  "kubernetes-gateway://a/cert",
  "kubernetes://b/cert",
];

/** What there is at one time: objects, and which edition of each secret. */
interface Step {
  readonly docs: readonly Doc[];
  readonly secrets: { readonly cert: number; readonly other: number };
}

/** Of a secret there are two editions, and the one that is not there. */
const edition = fc.nat({ max: 2 });
const step: fc.Arbitrary<Step> = fc.record({
  docs: fc.oneof(randomDocs(WRITER), wideDocs),
  secrets: fc.record({ cert: edition, other: edition }),
});

let pairs: readonly Issued[] = [];
beforeEach(async () => {
  const issuer = await createCertificateIssuer("a");
  pairs = [await issuer.issue("DNS:a"), await issuer.issue("DNS:a")];
});

const secretText = (name: string, number: number): string => {
  const pair = pairs[number];
  return pair === undefined ? "" : tlsSecret(`a/${name}`, pair, { "ca.crt": pair.cert });
};

/** Puts a step in force after another. */
function change(mesh: TestMesh, before: readonly Doc[], { docs, secrets }: Step): void {
  const kept = new Set(docs.map(keyOf));
  const gone = Object.entries(secrets).flatMap(([name, number]) => (number < pairs.length ? [] : [`Secret/a/${name}`]));
  mesh.change({
    remove: [...before.map(keyOf).filter((key) => !kept.has(key)), ...gone],
    put: [textOf(docs), ...Object.entries(secrets).map(([name, number]) => secretText(name, number))].join("\n---\n"),
  });
}

function viewOf(mesh: TestMesh, node: Node, variant: DiscoveryVariant): ProxyView {
  const facts = readNode(node, variant);
  if ("refused" in facts) throw new Error(facts.refused);
  return { ...mesh.world.view(facts), proven: true };
}

/** What a proxy is offered on such a stream: what it asks for in its first round, and secrets. */
async function offeredBy(mesh: TestMesh, view: ProxyView): Promise<ReadonlyMap<string, ResourceSet>> {
  const all = await mesh.resources({ name: "any", view });
  const secrets = mesh.world.providers
    .find(({ typeUrl }) => typeUrl === SECRET_TYPE)
    ?.offered(view, { wildcard: false, names: mesh.names.of(SECRETS) });
  if (secrets === undefined) throw new Error("nobody provides secrets");
  for (const [type, { failed }] of all) expect({ type, failed }).toEqual({ type, failed: [] });
  return new Map([...all, [SECRET_TYPE, secrets]]);
}

function serve(mesh: TestMesh): { readonly server: XdsServer; settle(): Promise<void> } {
  const clock = manualClock();
  const server = createXdsServer({
    ...{ providers: mesh.world.providers, names: mesh.names, clock, log: silentLog },
    viewOf: (node, _peer, variant) => viewOf(mesh, node, variant),
  });
  const settle = async (): Promise<void> => {
    for (let turn = 0; turn < 12; turn += 1) {
      await new Promise((resolve) => setImmediate(resolve));
      await server.idle();
      clock.advance(1_000); // Removals wait for what may refer to them, but not for ever.
    }
  };
  return { server, settle };
}

/** Asks as the proxy would. One with a delta stream is told of secrets that go; the other must know what there is. */
function ask(client: ProtocolClient, variant: DiscoveryVariant, offered: ReadonlyMap<string, ResourceSet>): void {
  for (const typeUrl of TYPES) {
    if (typeUrl === VIRTUAL_HOST_TYPE && variant === "sotw") continue;
    const found = [...(offered.get(typeUrl)?.resources.keys() ?? [])].sort();
    client.ask(typeUrl, WHOLE.includes(typeUrl) ? [] : typeUrl === SECRET_TYPE && variant === "delta" ? SECRETS : found);
  }
}

type Held = ReadonlyMap<string, ReadonlyMap<string, Uint8Array>>;

const shown = (held: Held): Readonly<Record<string, Readonly<Record<string, string>>>> =>
  Object.fromEntries(
    TYPES.map((typeUrl) => [
      typeUrl,
      Object.fromEntries([...(held.get(typeUrl) ?? [])].map(([name, body]) => [name, Buffer.from(body).toString("base64")])),
    ]),
  );

const bodiesOf = (offered: ReadonlyMap<string, ResourceSet>): Held =>
  new Map([...offered].map(([typeUrl, { resources }]) => [typeUrl, new Map([...resources].map(([name, { body }]) => [name, body]))]));

/** As if it had been offered, so that tables can be put together of it. */
const asOffered = (held: Held): ReadonlyMap<string, Pick<ResourceSet, "resources">> =>
  new Map(
    [...held].map(([typeUrl, bodies]) => [
      typeUrl,
      { resources: new Map([...bodies].map(([name, body]): [string, Encoded] => [name, { typeUrl, name, version: "", body }])) },
    ]),
  );

const VARIANTS: readonly DiscoveryVariant[] = ["delta", "sotw"];

async function endsTheSame(node: Node, steps: readonly Step[]): Promise<void> {
  const mesh = meshOf({ documents: [], mesh: { extensionProviders: [...PROVIDERS] }, nodes: [], recheck: false });
  const { server, settle } = serve(mesh);
  const clients = VARIANTS.map((variant) => ({ variant, client: new ProtocolClient(server, variant, node) }));
  let before: readonly Doc[] = [];
  for (const one of steps) {
    change(mesh, before, one);
    before = one.docs;
    server.push("test");
    const offers = [];
    for (const { variant, client } of clients) {
      const offered = await offeredBy(mesh, viewOf(mesh, node, variant));
      ask(client, variant, offered);
      offers.push({ client, offered });
    }
    await settle();
    for (const { client, offered } of offers) expect(shown(client.held)).toEqual(shown(bodiesOf(offered)));
    const [delta, whole] = await Promise.all(clients.map(({ client }) => comparableTables(asOffered(client.held))));
    expect(delta).toEqual(whole);
  }
}

describe("a delta stream and one of whole states end with the same bytes, those that are offered", () => {
  for (const { name, node } of WIDE_NODES.filter((one) => ["web", "hosts", "six", "edge"].includes(one.name)))
    it(`for ${name}`, async () => {
      await holds(
        fc.asyncProperty(fc.array(step, { minLength: 1, maxLength: 4 }), (steps) => endsTheSame(node, steps)),
        { numRuns: 12 },
      );
    });
});
