import { describe, expect, it } from "vitest";
import { CLUSTER_TYPE } from "../../src/wire/type-urls.ts";
import { call } from "../support/calls.ts";
import type { RunningProxy } from "../support/proxy.ts";
import { type Relay, startRelay } from "../support/relay.ts";
import { rule, SHOP_HOST, shopService } from "../support/shop.ts";
import { SERVICE_FILE, type ShopMesh, startShop } from "../support/shop-mesh.ts";
import { keepCalling } from "../support/traffic.ts";
import { eventually } from "../support/wait.ts";

const LIMIT = 77;

/** Envoy gives up on endpoints after a while; here that is longer than a restart takes on a busy machine, and than Envoy then waits to call again. */
const PATIENCE = `
apiVersion: networking.istio.io/v1alpha3
kind: EnvoyFilter
metadata: {name: patience, namespace: shop}
spec:
  configPatches:
  - applyTo: CLUSTER
    match: {context: SIDECAR_OUTBOUND, cluster: {service: ${SHOP_HOST}}}
    patch: {operation: MERGE, value: {eds_cluster_config: {eds_config: {initial_fetch_timeout: 280s}}}}
`;
const PATIENT = { istiod: { files: { "conf/patience.yaml": PATIENCE } } };

/** Resolves when the changed cluster is in use: it left the warming state, with endpoints, before Envoy gave up waiting for them. */
async function limitInUse({ proxy, ports }: ShopMesh): Promise<void> {
  const cluster = `outbound|${ports.service}|v1|${SHOP_HOST}`;
  await eventually(
    "the changed cluster is in use",
    async () => (await proxy.admin("/clusters")).includes(`${cluster}::default_priority::max_connections::${LIMIT}`),
    180_000,
  );
  await nothingWarms(proxy);
  expect(await proxy.stat(`cluster.${cluster}.membership_total`)).toBe(1);
  expect(await proxy.stat(`cluster.${cluster}.init_fetch_timeout`)).toBe(0);
}

const nothingWarms = (proxy: RunningProxy): Promise<boolean> =>
  eventually("no cluster waits", async () => (await proxy.stat("cluster_manager.warming_clusters")) === 0);

const limited = ({ ports }: ShopMesh): string => shopService(ports, `{connectionPool: {tcp: {maxConnections: ${LIMIT}}}}`);

describe.for(["delta", "sotw"] as const)("clusters get their endpoints (%s xDS)", (protocol) => {
  it("when a cluster changes and its endpoints do not", async () => {
    const shop = await startShop({ ...PATIENT, protocol, http: rule("v1") });
    const traffic = keepCalling(shop.target);
    await shop.istiod.write(SERVICE_FILE, limited(shop));
    await limitInUse(shop);
    await traffic.more(20);
    expect(await traffic.stop()).toEqual([]);
  });

  for (const restart of [false, true]) {
    const cut = restart ? "the wire is cut between the two and istiod restarts" : "the wire is cut between the two";

    it(`when a cluster changes and ${cut}`, async () => {
      let relay: Relay | undefined;
      const shop = await startShop({
        ...PATIENT,
        protocol,
        http: rule("v1"),
        xdsPort: async (istiod) => {
          relay = await startRelay({ to: istiod.grpcPort });
          return relay.port;
        },
      });
      const traffic = keepCalling(shop.target);
      const isCut = relay?.cutAfter(CLUSTER_TYPE);
      await shop.istiod.write(SERVICE_FILE, limited(shop));
      await isCut;
      if (restart) {
        await shop.istiod.stop("SIGKILL");
        await shop.istiod.start();
      }
      await limitInUse(shop);
      await traffic.more(20);
      expect(await traffic.stop()).toEqual([]);
    });

    it(`when Envoy starts and ${cut}`, async () => {
      let isCut: Promise<void> | undefined;
      const shop = await startShop({
        ...PATIENT,
        protocol,
        http: rule("v1"),
        xdsPort: async (istiod) => {
          const relay = await startRelay({ to: istiod.grpcPort });
          isCut = relay.cutAfter(CLUSTER_TYPE).then(async () => {
            if (!restart) return;
            await istiod.stop("SIGKILL");
            await istiod.start();
          });
          return relay.port;
        },
      });
      await isCut;
      expect((await call(shop.target)).by).toBe("v1");
      await nothingWarms(shop.proxy);
    });
  }
});
