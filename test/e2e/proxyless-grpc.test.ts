import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { fromBinary } from "@bufbuild/protobuf";
import { describe, expect, it } from "vitest";
import { ListenerSchema } from "../../src/gen/envoy/config/listener/v3/listener_pb.js";
import { LISTENER_TYPE } from "../../src/wire/type-urls.ts";
import { tempDir } from "../support/cleanup.ts";
import { type GrpcEcho, grpcEcho } from "../support/grpc-echo.ts";
import { startGrpcWorkload, type WorkloadOptions } from "../support/grpc-workload.ts";
import { askCertificate } from "../support/identity.ts";
import { type Istiod, startIstiod } from "../support/istiod.ts";
import { freePort } from "../support/ports.ts";
import { createIssuer } from "../support/tokens.ts";
import { eventually } from "../support/wait.ts";
import { subscribe } from "../support/xds-subscriber.ts";

const HOST = "greeter.shop.svc.cluster.local";
const TARGET = `${HOST}:7070`;

interface Backend {
  readonly server: Pick<GrpcEcho, "port">;
  readonly version: string;
}

const service = (backends: readonly Backend[]): string => `
apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: {name: greeter, namespace: shop}
spec:
  hosts: [${HOST}]
  addresses: [10.3.0.1]
  location: MESH_INTERNAL
  resolution: STATIC
  ports: [{number: 7070, name: grpc, protocol: GRPC}]
  endpoints:
${backends.map(({ server, version }) => `  - {address: 127.0.0.1, ports: {grpc: ${server.port}}, labels: {version: ${version}}}`).join("\n")}
`;

const SUBSETS = `
apiVersion: networking.istio.io/v1
kind: DestinationRule
metadata: {name: greeter, namespace: shop}
spec:
  host: ${HOST}
  subsets: [{name: v1, labels: {version: v1}}, {name: v2, labels: {version: v2}}]
`;

const rules = (http: string): string => `
apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: {name: greeter, namespace: shop}
spec:
  hosts: [${HOST}]
  http:
${http}
`;

const to = (subset: string, weight = 100): string => `{destination: {host: ${HOST}, subset: ${subset}}, weight: ${weight}}`;

/** How many calls each server answered. */
const tally = (answers: readonly string[]): Readonly<Record<string, number>> =>
  Object.fromEntries(Object.entries(Object.groupBy(answers, (answer) => answer)).map(([answer, all]) => [answer, all?.length ?? 0]));

const nobodyRefused = async (istiod: Istiod): Promise<void> => expect(await istiod.metric("pilot_total_xds_rejects")).toBe(0);

describe("gRPC's own xDS client", () => {
  it("finds services by name, short names too, and uses all their endpoints; a name nobody has is not found", async () => {
    const [one, two] = [await grpcEcho("one"), await grpcEcho("two")];
    const backends = [
      { server: one, version: "v1" },
      { server: two, version: "v2" },
    ];
    const istiod = await startIstiod({ files: { "conf/service.yaml": service(backends) } });
    const workload = startGrpcWorkload({ xdsPort: istiod.grpcPort });
    // Round robin over two connected servers: they take turns. The first calls may find one of them still connecting.
    await eventually("both servers answer", async () => Object.keys(tally(await workload.call(TARGET, { count: 4 }))).length === 2);
    expect(tally(await workload.call(TARGET, { count: 20 }))).toEqual({ "one: hello": 10, "two: hello": 10 });
    for (const name of ["greeter:7070", "greeter.shop:7070", "greeter.shop.svc:7070"]) {
      expect((await workload.call(name))[0], name).toMatch(/^(one|two): hello$/);
    }
    // gRPC gives a name 15 s to appear, so what nobody has is no error yet; meanwhile other names work.
    const [unknown] = await workload.call("nobody.shop.svc.cluster.local:7070", { timeoutMs: 500 });
    expect(unknown).toMatch(/^status 4: .*waiting for name resolution/);
    expect((await workload.call(TARGET))[0]).toMatch(/hello$/);
    await nobodyRefused(istiod);
  });

  it("may ask in either variant of the protocol, and is told in the one that can say it that a name does not exist", async () => {
    const istiod = await startIstiod({ files: { "conf/service.yaml": service([]) } });
    const node = { id: "sidecar~127.0.0.9~caller.shop~shop.svc.cluster.local", metadata: { GENERATOR: "grpc" } };
    for (const variant of ["sotw", "delta"] as const) {
      const answers = subscribe({ port: istiod.grpcPort, variant, node, typeUrl: LISTENER_TYPE, names: ["greeter:7070", "nobody:7070"] });
      const { resources, removed } = await eventually(`an answer (${variant})`, () => answers[0]);
      expect(resources.map(({ value }) => fromBinary(ListenerSchema, value).name)).toEqual(["greeter:7070"]);
      expect(removed).toEqual(variant === "delta" ? ["nobody:7070"] : []);
    }
  });

  it("follows endpoints as they come and go", async () => {
    const [one, two] = [await grpcEcho("one"), await grpcEcho("two")];
    const istiod = await startIstiod({ files: { "conf/service.yaml": service([{ server: one, version: "v1" }]) } });
    const workload = startGrpcWorkload({ xdsPort: istiod.grpcPort });
    expect(tally(await workload.call(TARGET, { count: 5 }))).toEqual({ "one: hello": 5 });
    await istiod.write("conf/service.yaml", service([{ server: two, version: "v1" }]));
    await eventually("calls move to the other server", async () => tally(await workload.call(TARGET, { count: 5 }))["two: hello"] === 5);
    await istiod.write("conf/service.yaml", service([]));
    await eventually("calls fail without a server", async () => (await workload.call(TARGET))[0]?.startsWith("status 14: ") === true);
    await istiod.write("conf/service.yaml", service([{ server: one, version: "v1" }]));
    await eventually("calls arrive again", async () => (await workload.call(TARGET))[0] === "one: hello");
    await istiod.remove("conf/service.yaml");
    await eventually("calls fail when the name is gone", async () => (await workload.call(TARGET))[0]?.startsWith("status 14: ") === true);
    await nobodyRefused(istiod);
  });
});

describe("rules for gRPC's own xDS client", () => {
  it("weights, subsets, headers, methods, faults, timeouts and direct responses hold, and move when the file changes", async () => {
    const [one, two] = [await grpcEcho("one"), await grpcEcho("two")];
    const backends = [
      { server: one, version: "v1" },
      { server: two, version: "v2" },
    ];
    const istiod = await startIstiod({
      files: {
        "conf/service.yaml": service(backends),
        "conf/subsets.yaml": SUBSETS,
        "conf/rules.yaml": rules(`  - route: [${to("v1", 90)}, ${to("v2", 10)}]`),
      },
    });
    const workload = startGrpcWorkload({ xdsPort: istiod.grpcPort });
    const settled = (http: string, probe: () => Promise<boolean>): Promise<unknown> =>
      istiod.write("conf/rules.yaml", rules(http)).then(() => eventually("the new rules hold", probe));

    // 1,000 draws of 10 %: 10 to 250 is more than nine standard deviations (9.5) around 100 on either side.
    const { "one: hello": most = 0, "two: hello": few = 0 } = tally(await workload.call(TARGET, { count: 1_000 }));
    expect(most + few).toBe(1_000);
    expect(few).toBeGreaterThan(10);
    expect(few).toBeLessThan(250);

    await settled(`  - route: [${to("v2")}]`, async () => tally(await workload.call(TARGET, { count: 10 }))["two: hello"] === 10);

    const branches = `
  - match: [{headers: {x-who: {exact: tester}}, withoutHeaders: {x-old: {}}}]
    route: [${to("v1")}]
  - match: [{uri: {exact: /echo.Echo/Answered}}]
    directResponse: {status: 403}
  - match: [{uri: {exact: /echo.Echo/Moved}}]
    redirect: {authority: elsewhere}
  - match: [{headers: {x-fault: {exact: abort}}}]
    fault: {abort: {grpcStatus: RESOURCE_EXHAUSTED, percentage: {value: 100}}}
    route: [${to("v1")}]
  - match: [{headers: {x-fault: {exact: slow}}}]
    fault: {delay: {fixedDelay: 5s, percentage: {value: 100}}}
    timeout: 0.2s
    route: [${to("v1")}]
  - match: [{queryParams: {who: {exact: nobody}}}]
    route: [${to("v1")}]
  - match: [{method: {exact: POST}, authority: {prefix: greeter}}]
    corsPolicy: {allowOrigins: [{exact: "https://shop.example"}]}
    mirror: {host: ${HOST}, subset: v1}
    headers: {request: {set: {x-added: "1"}}}
    route: [${to("v2")}]`;
    const who = async (headers: Readonly<Record<string, string>>, path?: string): Promise<string | undefined> =>
      (await workload.call(TARGET, { headers, ...(path !== undefined && { path }) }))[0];
    await settled(branches, async () => (await who({ "x-who": "tester" })) === "one: hello");
    expect(await who({ "x-who": "tester", "x-old": "1" })).toBe("two: hello");
    expect(await who({})).toBe("two: hello");
    expect(await who({}, "/echo.Echo/Answered")).toMatch(/^status 7: /);
    expect(await who({}, "/echo.Echo/Moved")).toMatch(/^status 2: /);
    expect(await who({ "x-fault": "abort" })).toMatch(/^status 8: /);
    expect(await who({ "x-fault": "slow" })).toMatch(/^status 4: /);

    await istiod.remove("conf/rules.yaml");
    await eventually("both versions answer", async () => Object.keys(tally(await workload.call(TARGET, { count: 8 }))).length === 2);
    await nobodyRefused(istiod);
  });

  it("calls with equal hash keys stay together, and unavailable servers are tried again", async () => {
    const [one, two] = [await grpcEcho("one"), await grpcEcho("two", { failures: 1 })];
    const backends = [
      { server: one, version: "v1" },
      { server: two, version: "v2" },
    ];
    const hashed = `
apiVersion: networking.istio.io/v1
kind: DestinationRule
metadata: {name: greeter, namespace: shop}
spec:
  host: ${HOST}
  trafficPolicy: {loadBalancer: {consistentHash: {httpHeaderName: x-user, maglev: {}}}}
  subsets: [{name: v2, labels: {version: v2}, trafficPolicy: {loadBalancer: {simple: LEAST_REQUEST}}}]
`;
    const istiod = await startIstiod({ files: { "conf/service.yaml": service(backends), "conf/hashed.yaml": hashed } });
    const workload = startGrpcWorkload({ xdsPort: istiod.grpcPort });
    const users = Array.from({ length: 40 }, (_, number) => `user-${number}`);
    const homes = new Set<string>();
    for (const user of users) {
      const answers = tally(await workload.call(TARGET, { count: 3, headers: { "x-user": user } }));
      expect(Object.keys(answers), user).toHaveLength(1);
      for (const answer of Object.keys(answers)) homes.add(answer);
    }
    expect(homes.size).toBe(2);
    await istiod.write("conf/rules.yaml", rules(`  - retries: {attempts: 3, retryOn: "unavailable,reset"}\n    route: [${to("v2")}]`));
    await eventually("calls go to the second version", async () => (await workload.call(TARGET))[0] === "two: hello");
    expect(two.calls.length).toBeGreaterThan(1);
    await nobodyRefused(istiod);
  });
});

describe("gRPC's own xDS server", () => {
  const issuer = createIssuer("https://id.example.com");
  const mesh = `tokenIssuers:
- issuer: ${issuer.name}
  jwks: '${issuer.jwks}'
  audiences: [istio-ca]
  identity: {namespace: ns, serviceAccount: sa}
`;
  const secured = (port: number): string => `
apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: {name: greeter, namespace: shop}
spec:
  hosts: [${HOST}]
  location: MESH_INTERNAL
  resolution: STATIC
  ports: [{number: 7070, name: grpc, protocol: GRPC}]
  endpoints: [{address: 127.0.0.1, ports: {grpc: ${port}}, labels: {security.istio.io/tlsMode: istio}, serviceAccount: greeter}]
---
apiVersion: networking.istio.io/v1
kind: DestinationRule
metadata: {name: greeter, namespace: shop}
spec: {host: ${HOST}, trafficPolicy: {tls: {mode: ISTIO_MUTUAL}}}
`;
  const allow = (account: string, path = "/echo.Echo/Say"): string => `
apiVersion: security.istio.io/v1
kind: AuthorizationPolicy
metadata: {name: greeter, namespace: shop}
spec:
  rules:
  - from: [{source: {principals: [cluster.local/ns/shop/sa/${account}]}}]
    to: [{operation: {paths: [${path}]}}]
`;

  /** Files with a certificate of the mesh for a service account, as an agent keeps them. */
  async function identityOf(istiod: Istiod, account: string): Promise<NonNullable<WorkloadOptions["identity"]>> {
    const dir = await tempDir();
    const { key, chain, roots } = await askCertificate(istiod, { token: issuer.token({ aud: "istio-ca", ns: "shop", sa: account }) });
    const files = { certificate: join(dir, "cert.pem"), key: join(dir, "key.pem"), roots: join(dir, "roots.pem") };
    await writeFile(files.certificate, chain.join(""));
    await writeFile(files.key, key);
    await writeFile(files.roots, roots);
    return files;
  }

  it("speaks mutual TLS with the mesh's certificates, and policies say who may call", async () => {
    const port = await freePort();
    const files = { "mesh.yaml": mesh, "conf/service.yaml": secured(port), "conf/policy.yaml": allow("caller") };
    const istiod = await startIstiod({ files });
    const xdsPort = istiod.grpcPort;
    const server = startGrpcWorkload({ xdsPort, address: "127.0.0.1", identity: await identityOf(istiod, "greeter") });
    expect(await server.serve(`127.0.0.1:${port}`, "secured")).toBe(port);
    const caller = startGrpcWorkload({ xdsPort, identity: await identityOf(istiod, "caller") });
    expect(await caller.call(TARGET, { secure: true })).toEqual(["secured"]);
    expect((await caller.call(TARGET))[0]).toMatch(/^status 14: /);

    for (const policy of [allow("somebody-else"), allow("caller", "/echo.Echo/Other")]) {
      await istiod.write("conf/policy.yaml", policy);
      await eventually(
        "the caller is refused",
        async () => (await caller.call(TARGET, { secure: true }))[0]?.startsWith("status 7: ") === true,
      );
      await istiod.write("conf/policy.yaml", allow("caller"));
      await eventually("the caller is let in again", async () => (await caller.call(TARGET, { secure: true }))[0] === "secured");
    }
    // The client wants the server to be who the mesh says runs it.
    await istiod.write("conf/service.yaml", secured(port).replace("serviceAccount: greeter", "serviceAccount: impostor"));
    const stranger = startGrpcWorkload({ xdsPort, identity: await identityOf(istiod, "caller") });
    await eventually(
      "another server is not believed",
      async () => (await stranger.call(TARGET, { secure: true }))[0]?.startsWith("status 14: ") === true,
    );
    await nobodyRefused(istiod);
  });
});
