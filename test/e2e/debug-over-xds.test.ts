import { create, fromBinary, fromJson, type JsonObject, type JsonValue, type Message, toBinary } from "@bufbuild/protobuf";
import { BinaryReader } from "@bufbuild/protobuf/wire";
import type { Any } from "@bufbuild/protobuf/wkt";
import { Metadata } from "@grpc/grpc-js";
import { describe, expect, it, onTestFinished } from "vitest";
import { NodeSchema } from "../../src/gen/envoy/config/core/v3/base_pb.js";
import {
  DeltaDiscoveryRequestSchema,
  DeltaDiscoveryResponseSchema,
  DiscoveryRequestSchema,
  DiscoveryResponseSchema,
} from "../../src/gen/envoy/service/discovery/v3/discovery_pb.js";
import { eachField } from "../../src/wire/field-reader.ts";
import { openAdsClient } from "../../src/wire/grpc-client.ts";
import { encodedJson, messageRegistry } from "../../src/wire/json.ts";
import { CLUSTER_TYPE } from "../../src/wire/type-urls.ts";
import { clientCredentials } from "../support/identity.ts";
import { type Istiod, startIstiod } from "../support/istiod.ts";
import { startProxy } from "../support/proxy.ts";
import { inStep } from "../support/sync.ts";
import { createIssuer } from "../support/tokens.ts";
import { eventually } from "../support/wait.ts";
import { subscribe } from "../support/xds-subscriber.ts";

const issuer = createIssuer("https://id.test");
const MESH = `tokenIssuers:
- {issuer: ${issuer.name}, jwks: '${issuer.jwks}', audiences: [istio-ca], identity: {namespace: ns, serviceAccount: sa}}
`;
const tokenOf = (ns: string): string => issuer.token({ aud: "istio-ca", ns, sa: "default" });

interface Asked {
  readonly namespace?: string;
  /** Instead of one for that namespace. */
  readonly token?: string;
  readonly typeUrl: string;
  readonly names?: readonly string[];
  readonly variant?: "delta" | "sotw";
  /** On the plaintext port, without showing anything, and for clusters after that: something must be answered. */
  readonly plain?: true;
}

interface Told {
  readonly types: readonly string[];
  readonly values: readonly Uint8Array[];
  readonly controlPlane: string;
}

/** Asks as Istio's tools do: as a node that is no workload of the caller's. Gives the answer, or why there is none. */
async function ask(
  istiod: Istiod,
  { namespace = "istio-system", token = tokenOf(namespace), typeUrl, names = [], variant = "sotw", plain }: Asked,
): Promise<Told | string> {
  const { promise, resolve } = Promise.withResolvers<Told | string>();
  const metadata = new Metadata();
  metadata.set("authorization", `Bearer ${token}`);
  const client = openAdsClient({
    address: plain ? `127.0.0.1:${istiod.grpcPort}` : `localhost:${istiod.securePort}`,
    variant,
    ...(!plain && { credentials: await clientCredentials(istiod), metadata }),
    message(bytes) {
      const { resources, controlPlane } =
        variant === "delta" ? fromBinary(DeltaDiscoveryResponseSchema, bytes) : fromBinary(DiscoveryResponseSchema, bytes);
      const all = resources.flatMap((one) => (one.$typeName === "google.protobuf.Any" ? [one] : (one.resource ?? [])));
      resolve({
        types: all.map((one) => one.typeUrl),
        values: all.map((one) => one.value),
        controlPlane: controlPlane?.identifier ?? "",
      });
    },
    ended: (error) => resolve(error?.message ?? "ended"),
  });
  onTestFinished(() => client.close());
  const node = { id: "sidecar~192.0.2.1~test-1.default~default.svc.cluster.local" };
  const request = (type: string): Uint8Array =>
    variant === "delta"
      ? toBinary(
          DeltaDiscoveryRequestSchema,
          create(DeltaDiscoveryRequestSchema, { node, typeUrl: type, resourceNamesSubscribe: [...names] }),
        )
      : toBinary(
          DiscoveryRequestSchema,
          create(DiscoveryRequestSchema, {
            node,
            typeUrl: type,
            resourceNames: [...names],
            responseNonce: type === typeUrl ? "theirs" : "",
          }),
        );
  for (const type of plain ? [typeUrl, CLUSTER_TYPE] : [typeUrl]) client.send(request(type));
  return promise;
}

/** Who a ClientConfig is about, and the types it tells of with their status. */
function clientOf(value: Uint8Array): { readonly id: string; readonly metadata: unknown; readonly types: readonly string[] } {
  let node = create(NodeSchema);
  const types: string[] = [];
  eachField(value, (field, reader) => {
    if (field === 1) node = fromBinary(NodeSchema, reader.bytes());
    else if (field === 3) types.push(typeOf(reader.bytes()));
    else return false;
    return true;
  });
  return { id: node.id, metadata: node.metadata, types };
}

function typeOf(value: Uint8Array): string {
  const reader = new BinaryReader(value);
  let [type, status] = ["", 0];
  while (reader.pos < reader.len) {
    const [field, wireType] = reader.tag();
    if (field === 1) type = reader.string();
    else if (field === 6) status = reader.uint32();
    else reader.skip(wireType, field);
  }
  return `${type} ${status}`;
}

const SYNCED = 1;

describe("questions of Istio's tools over xDS", () => {
  it("are answered for who has proved to be of the control plane's namespace, and of others as far as it concerns them", async () => {
    const istiod = await startIstiod({ files: { "mesh.yaml": MESH } });
    for (const namespace of ["shop", "mall"]) {
      const node = { id: `sidecar~127.0.0.1~web.${namespace}~${namespace}.svc.cluster.local`, metadata: { NAMESPACE: namespace } };
      const answers = subscribe({ port: istiod.grpcPort, variant: "delta", node, typeUrl: CLUSTER_TYPE });
      await eventually("the proxy is served", () => answers.length > 0);
    }
    const syncz = { typeUrl: "istio.io/debug/syncz" };
    for (const variant of ["sotw", "delta"] as const) {
      const told = await eventually("both are in step", async () => {
        const answer = await ask(istiod, { ...syncz, variant });
        if (typeof answer === "string") throw new Error(answer);
        const all = answer.values.map(clientOf);
        if (!all.every(({ types }) => types.every((type) => type.endsWith(` ${SYNCED}`)))) throw new Error(JSON.stringify(all));
        return answer;
      });
      expect(new Set(told.types)).toEqual(new Set(["type.googleapis.com/envoy.service.status.v3.ClientConfig"]));
      expect(told.values.map(clientOf)).toMatchObject([
        { id: "web.mall", metadata: { NAMESPACE: "mall" }, types: [`${CLUSTER_TYPE} ${SYNCED}`] },
        { id: "web.shop", metadata: { NAMESPACE: "shop" } },
      ]);
      expect(JSON.parse(told.controlPlane)).toMatchObject({ Component: "istiod", ID: "istiod" });
    }
    const own = await ask(istiod, { ...syncz, namespace: "shop" });
    expect(typeof own === "string" ? own : own.values.map((value) => clientOf(value).id)).toEqual(["web.shop"]);

    const page = await ask(istiod, { typeUrl: "istio.io/debug", names: ["config_dump?proxyID=web.shop"] });
    expect(typeof page === "string" ? page : JSON.parse(Buffer.from(page.values[0] ?? []).toString())).toHaveProperty("configs");
    expect(await ask(istiod, { typeUrl: "istio.io/debug", names: ["nothing"] })).toContain("there is no page");
    expect(await ask(istiod, { typeUrl: "istio.io/debug" })).toContain("name one debug page");
    expect(await ask(istiod, { typeUrl: "istio.io/else" })).toContain("UNIMPLEMENTED");

    const body = JSON.stringify({ namespace: "istio-system", serviceAccount: "x" });
    const headers = { "content-type": "application/json" };
    const joining = (await (await istiod.debug("/api/workload-token", { method: "POST", headers, body })).json()) as {
      readonly token: string;
    };
    expect(await ask(istiod, { ...syncz, token: joining.token })).toContain("a token for one certificate");

    for (const variant of ["sotw", "delta"] as const) {
      const nobody = await ask(istiod, { ...syncz, variant, plain: true });
      expect(typeof nobody === "string" ? nobody : new Set(nobody.types)).toEqual(new Set([CLUSTER_TYPE]));
    }
  });

  it("show others what is of their namespace, and do nothing for anybody", async () => {
    const entry = (namespace: string): string =>
      `{apiVersion: networking.istio.io/v1, kind: ServiceEntry, metadata: {name: of-${namespace}, namespace: ${namespace}}, spec: {hosts: [${namespace}.test], ports: [{number: 80, name: http, protocol: HTTP}]}}\n`;
    const istiod = await startIstiod({ files: { "mesh.yaml": MESH, "conf/all.yaml": `${entry("shop")}---\n${entry("mall")}` } });
    const node = { id: "sidecar~127.0.0.1~web.mall~mall.svc.cluster.local", metadata: { NAMESPACE: "mall" } };
    const answers = subscribe({ port: istiod.grpcPort, variant: "delta", node, typeUrl: CLUSTER_TYPE });
    await eventually("the proxy is served", () => answers.length > 0);
    const page = async (name: string, namespace?: string): Promise<string> => {
      const told = await ask(istiod, { typeUrl: "istio.io/debug", names: [name], ...(namespace !== undefined && { namespace }) });
      return typeof told === "string" ? told : told.values.map((value) => Buffer.from(value).toString()).join();
    };
    expect(await page("configz")).toMatch(/of-mall.*of-shop|of-shop.*of-mall/s);
    const own = await page("configz", "shop");
    expect([own.includes("of-shop"), own.includes("mall")]).toEqual([true, false]);
    expect(await page("cdsz?proxyID=web.mall", "mall")).toContain("outbound|80||mall.test");
    expect(await page("cdsz?proxyID=web.mall", "shop")).toContain("Proxy not connected to this Pilot instance");
    for (const name of ["registryz", "mesh", "list"])
      expect([name, await page(name, "shop")]).toEqual([name, expect.stringContaining("PERMISSION_DENIED")]);
    expect(await page("pprof/profile?seconds=1")).toContain("PERMISSION_DENIED");
    expect(await page("force_disconnect?proxyID=web.mall")).toContain("there is no page");
    expect(await (await istiod.debug("/debug/connections")).json()).toMatchObject({ totalClients: 1 });
    const dumpFor = (namespace: string) => ask(istiod, { typeUrl: "istio.io/debug/config_dump", names: ["web.mall"], namespace });
    const hidden = await dumpFor("shop");
    expect(typeof hidden === "string" ? hidden : hidden.values.map((value) => Buffer.from(value).toString())).toEqual([
      "Proxy not connected to this Pilot instance. It may be connected to another instance.",
    ]);
    const shown = await dumpFor("mall");
    expect(typeof shown === "string" ? shown : shown.types).toContain("type.googleapis.com/envoy.admin.v3.ClustersConfigDump");
  });

  it("show of a proxy what it says that it has, as messages of Envoy's", async () => {
    const service =
      "{hosts: [web.test], ports: [{number: 80, name: http, protocol: HTTP}], resolution: STATIC, endpoints: [{address: 127.0.0.41}]}";
    const rule = "{hosts: [web.test], http: [{route: [{destination: {host: web.test}}], timeout: 3s}]}";
    const conf = `{apiVersion: networking.istio.io/v1, kind: ServiceEntry, metadata: {name: web, namespace: shop}, spec: ${service}}
---
{apiVersion: networking.istio.io/v1, kind: VirtualService, metadata: {name: web, namespace: shop}, spec: ${rule}}
`;
    const istiod = await startIstiod({ files: { "mesh.yaml": MESH, "conf/shop.yaml": conf } });
    const proxy = await startProxy({ xdsPort: istiod.grpcPort, name: "web", address: "127.0.0.41", namespace: "shop" });
    await inStep(istiod, "web.shop");
    const registry = await messageRegistry();
    const read = (part: JsonValue): readonly [string, unknown] => {
      const type = String((part as JsonObject)["@type"]);
      const schema = registry.getMessage(type.slice(type.lastIndexOf("/") + 1));
      return [
        type,
        schema === undefined ? undefined : resourcesIn(fromJson(schema, withoutType(part), { registry, ignoreUnknownFields: true })),
      ];
    };
    const own = new Map(((JSON.parse(await proxy.admin("/config_dump")) as JsonObject).configs as readonly JsonValue[]).map(read));
    const told = await ask(istiod, { typeUrl: "istio.io/debug/config_dump", names: ["web.shop"] });
    if (typeof told === "string") throw new Error(told);
    for (const [index, type] of told.types.entries()) {
      const schema = registry.getMessage(type.slice(type.lastIndexOf("/") + 1));
      const value = told.values[index];
      if (schema === undefined || value === undefined) throw new Error(`${type} is unknown`);
      const resources = resourcesIn(fromBinary(schema, value));
      if (/Clusters|Listeners|Routes/.test(type)) expect(resources.length, type).toBeGreaterThan(0);
      if (own.has(type)) expect([type, resources]).toEqual([type, own.get(type)]);
    }
    expect([...own.keys()]).toEqual(expect.arrayContaining(told.types.filter((type) => /Clusters|Listeners|Routes/.test(type))));

    /** The bytes of all resources in a dump; those from the bootstrap are not the control plane's. */
    function resourcesIn(dump: Message): readonly string[] {
      return Object.entries(dump)
        .flatMap(([field, value]) => (field.startsWith("dynamic") || field === "ecdsFilters" ? anysIn(value) : []))
        .map(({ typeUrl, value }) => JSON.stringify(encodedJson(registry, { typeUrl, body: value }), inOrder))
        .sort();
    }
  });
});

/** Maps have no order. */
const inOrder = (_: string, value: unknown): unknown =>
  typeof value === "object" && value !== null && !Array.isArray(value) ? Object.fromEntries(Object.entries(value).sort()) : value;

const withoutType = (json: JsonValue): JsonValue => {
  const { "@type": _, ...rest } = json as JsonObject;
  return rest;
};

function anysIn(value: unknown): readonly Any[] {
  if (typeof value !== "object" || value === null || value instanceof Uint8Array) return [];
  if ("$typeName" in value && value.$typeName === "google.protobuf.Any") return [value as Any];
  return Object.values(value).flatMap(anysIn);
}
