import assert from "node:assert/strict";
import { describe, it } from "vitest";
import { manualClock } from "../../../test/support/manual-clock.ts";
import { bytesField, messageField, textField } from "../../wire/field-writer.ts";
import { PEER_TYPE } from "../../wire/type-urls.ts";
import { readLabels } from "./label-text.ts";
import { MOST_CARRIED } from "./ledger.ts";
import { createPeers, MOST_PEERS } from "./peers.ts";
import { createStandardMetrics } from "./standard-metrics.ts";
import { nodeFacts } from "./workload-facts.ts";

/** A control plane that knows some workloads: those at `shop/web/10.0.0.x` are called by the name given for the address. */
function start(known: Record<string, string> = {}) {
  const clock = manualClock();
  const asked: string[] = [];
  const answer = (name: string): void => {
    const workload = known[name];
    const body = messageField(2, [bytesField(2, textField(1, workload ?? ""))]);
    const bytes = Buffer.concat([textField(3, name), body]);
    peers.subscription.taken({
      typeUrl: PEER_TYPE,
      nonce: "1",
      resources: workload === undefined ? [] : [{ name, version: "1", bytes }],
      removed: workload === undefined ? [name] : [],
    });
  };
  const peers = createPeers({
    clock,
    say({ subscribe = [] }) {
      for (const name of subscribe) {
        asked.push(name);
        if (known[name] !== "silence") queueMicrotask(() => answer(name));
      }
    },
  });
  const facts = nodeFacts({ NAME: "cart-1", NAMESPACE: "shop", LABELS: { app: "cart", version: "v2" }, CLUSTER_ID: "c1" });
  const metrics = createStandardMetrics({ peers, self: { name: "shop/cart/10.0.0.1", facts, principal: CART } });
  const page = async (lines: readonly string[], options = { all: true, brokeOff: false }): Promise<Record<string, number>> => {
    const one = metrics.page(options);
    for (const line of lines) assert.ok(one.take(line), line);
    return samples(await one.text(options.brokeOff));
  };
  return { clock, asked, known, answer, metrics, page, peers };
}

/** Numbers by `name workload`, where the workload is the one at the other side; histograms by limit too. */
function samples(text: string): Record<string, number> {
  const found: Record<string, number> = {};
  for (const line of text.split("\n")) {
    const [, name = "", inner = "", value = ""] = /^(\w+)\{(.*)\} (\S+)$/.exec(line) ?? [];
    if (name === "") continue;
    const labels = readLabels(inner);
    const other = labels.get("reporter") === "destination" ? labels.get("source_workload") : labels.get("destination_workload");
    const key = [name, other, labels.get("le")].filter((part) => part !== undefined).join(" ");
    found[key] = (found[key] ?? 0) + Number(value);
  }
  return found;
}

const CART = "spiffe://cluster.local/ns/shop/sa/cart";
const WEB = "spiffe://cluster.local/ns/shop/sa/web";
const TYPE = "# TYPE envoy_istio_requests_total counter";
const from = (address: string, count: number): string =>
  `envoy_istio_requests_total{reporter="destination",source_principal="${WEB}",_peer="${address}"} ${count}`;

describe("Istio's metrics among Envoy's", () => {
  it("take their labels from what Envoy counts by, the node and the control plane", async () => {
    const { metrics, asked } = start({ "shop/web/10.0.0.2": "web-v1" });
    const page = metrics.page({ all: true });
    const services = String.raw`[{\"host\":\"cart.shop.svc.cluster.local\",\"name\":\"cart\",\"namespace\":\"shop\"}]`;
    for (const line of [
      TYPE,
      `envoy_istio_requests_total{response_code="200",reporter="destination",source_principal="${WEB}",_peer="10.0.0.2",_services="${services}"} 3`,
      `envoy_istio_requests_total{grpc_response_status="0",reporter="source",_peer="db-0;store;db;;c2",_cluster="outbound|80||db.store.svc.cluster.local"} 4`,
    ])
      page.take(line);
    assert.equal(page.take("envoy_cluster_up{} 1"), false);
    const [type, server = "", client = ""] = (await page.text(false)).split("\n");
    assert.equal(type, "# TYPE istio_requests_total counter");
    assert.deepEqual(asked, ["shop/cart/10.0.0.1", "shop/web/10.0.0.2"]);
    assert.deepEqual(Object.fromEntries(readLabels(/\{(.*)\}/.exec(server)?.[1] ?? "")), {
      response_code: "200",
      reporter: "destination",
      source_principal: WEB,
      destination_principal: CART,
      source_workload: "web-v1",
      source_workload_namespace: "unknown",
      source_canonical_service: "web-v1",
      source_canonical_revision: "latest",
      source_app: "unknown",
      source_version: "unknown",
      source_cluster: "unknown",
      destination_workload: "cart-1",
      destination_workload_namespace: "shop",
      destination_canonical_service: "cart",
      destination_canonical_revision: "v2",
      destination_app: "cart",
      destination_version: "v2",
      destination_cluster: "c1",
      destination_service: "cart.shop.svc.cluster.local",
      destination_service_name: "cart",
      destination_service_namespace: "shop",
      request_protocol: "http",
      connection_security_policy: "mutual_tls",
    });
    const labels = readLabels(/\{(.*)\}/.exec(client)?.[1] ?? "");
    assert.deepEqual(
      ["source_workload", "destination_workload", "destination_canonical_revision", "destination_service_name", "request_protocol"].map(
        (name) => labels.get(name),
      ),
      ["cart-1", "db-0", "latest", "db", "grpc"],
    );
    assert.match(client, / 4$/);
  });

  it("leave out what a Telemetry takes away, keep what it sets, and add up what is the same then", async () => {
    const { metrics } = start();
    const page = metrics.page({ all: true });
    for (const line of [
      TYPE,
      `envoy_istio_requests_total{reporter="source",_peer="a;n;a;;",destination_service="mine",_without="destination_workload,source_app"} 1`,
      `envoy_istio_requests_total{reporter="source",_peer="b;n;a;;",destination_service="mine",_without="destination_workload,source_app"} 2`,
    ])
      page.take(line);
    const lines = (await page.text(false)).trim().split("\n");
    assert.equal(lines.length, 2);
    assert.match(lines[1] ?? "", /,destination_service="mine",.* 3$/);
    assert.doesNotMatch(lines[1] ?? "", /destination_workload=|source_app=|_without|_peer=/);
  });

  it("add up replicas of a client, histograms bucket by bucket", async () => {
    const { page } = start({ "shop/web/10.0.0.2": "web", "shop/web/10.0.0.3": "web" });
    const labels = (address: string): string => `reporter="destination",source_principal="${WEB}",_peer="${address}"`;
    const name = "envoy_istio_request_bytes";
    const lines = ["10.0.0.2", "10.0.0.3"].flatMap((address, index) => [
      `${name}_bucket{${labels(address)},le="0.5"} ${index}`,
      `${name}_bucket{${labels(address)},le="+Inf"} 2`,
      `${name}_sum{${labels(address)}} 1.5`,
      `${name}_count{${labels(address)}} 2`,
    ]);
    assert.deepEqual(await page([`# TYPE ${name} histogram`, ...lines]), {
      "istio_request_bytes_bucket web 0.5": 1,
      "istio_request_bytes_bucket web +Inf": 4,
      "istio_request_bytes_sum web": 3,
      "istio_request_bytes_count web": 4,
    });
  });

  it("never become smaller: series that Envoy drops, its restart, an address that passes to another workload", async () => {
    const { page, known, answer } = start({ "shop/web/10.0.0.2": "web", "shop/web/10.0.0.3": "web" });
    const R = "istio_requests_total";
    assert.deepEqual(await page([TYPE, from("10.0.0.2", 3), from("10.0.0.3", 4)]), { [`${R} web`]: 7 });
    assert.deepEqual(await page([TYPE, from("10.0.0.3", 5)]), { [`${R} web`]: 8 });
    assert.deepEqual(await page([TYPE, from("10.0.0.2", 1), from("10.0.0.3", 5)]), { [`${R} web`]: 9 });
    assert.deepEqual(await page([TYPE, from("10.0.0.3", 1)]), { [`${R} web`]: 10 });
    known["shop/web/10.0.0.3"] = "job";
    answer("shop/web/10.0.0.3");
    assert.deepEqual(await page([TYPE, from("10.0.0.3", 3)]), { [`${R} web`]: 10, [`${R} job`]: 2 });
    assert.deepEqual(await page([]), { [`${R} web`]: 10, [`${R} job`]: 2 });
  });

  it("are not confused by pages that broke off, that show a part, or that were asked for at the same time", async () => {
    const { page, metrics } = start({ "shop/web/10.0.0.2": "web" });
    const R = "istio_requests_total web";
    await page([TYPE, from("10.0.0.2", 5)]);
    assert.deepEqual(await page([TYPE], { all: true, brokeOff: true }), { [R]: 5 });
    assert.deepEqual(await page([TYPE], { all: false, brokeOff: false }), {});
    const [older, newer] = [metrics.page({ all: true }), metrics.page({ all: true })];
    for (const line of [TYPE, from("10.0.0.2", 6)]) older.take(line);
    for (const line of [TYPE, from("10.0.0.2", 8)]) newer.take(line);
    assert.deepEqual(samples(await newer.text(false)), { [R]: 8 });
    assert.deepEqual(samples(await older.text(false)), { [R]: 8 });
    assert.deepEqual(await page([TYPE, from("10.0.0.2", 9)]), { [R]: 9 });
  });

  it("wait a moment for the control plane, once, and say when they do not know", async () => {
    const { metrics, clock, asked } = start({ "shop/web/10.0.0.2": "silence" });
    const read = (): Promise<string> => {
      const page = metrics.page({ all: true });
      for (const line of [TYPE, from("10.0.0.2", 1)]) page.take(line);
      return page.text(false);
    };
    const first = read();
    await Promise.resolve();
    clock.advance(1_000);
    assert.match(await first, /source_workload="unknown",source_workload_namespace="shop"/);
    await read();
    assert.deepEqual(asked, ["shop/cart/10.0.0.1", "shop/web/10.0.0.2"]);
  });

  it("are bounded: peers beyond a number are not looked up, series beyond a number are summed up", async () => {
    const { page, asked, metrics, peers } = start();
    const many = (prefix: string, count: number): readonly string[] =>
      Array.from({ length: count }, (_, at) => `${prefix}.${at >> 8}.${at & 255}`);
    const numbers = await page([TYPE, ...many("10.1", MOST_PEERS + 10).map((address) => from(address, 1))]);
    assert.equal(asked.length, MOST_PEERS);
    assert.equal(numbers["istio_requests_total overflow"], 11);
    assert.equal(peers.refused, 11);
    const to = (at: number): string => `envoy_istio_requests_total{reporter="source",_peer="w${at};n;w;;"} 1`;
    await page([TYPE, ...Array.from({ length: MOST_CARRIED + 20 }, (_, at) => to(at))]);
    const after = await page([TYPE]);
    assert.ok(Object.keys(after).length <= MOST_CARRIED + 2);
    assert.ok(metrics.beyond >= 20);
    assert.equal(
      Object.values(after).reduce((sum, value) => sum + value, 0),
      MOST_PEERS + 10 + MOST_CARRIED + 20,
    );
  });

  it("have bytes of connections that last among those of others, also after Envoy has forgotten them", async () => {
    const { page } = start();
    const name = "envoy_istio_tcp_sent_bytes";
    const labels = 'response_flags="-",reporter="source",_peer="db;store;db;;"';
    const ended = [`# TYPE ${name}_total counter`, `${name}_total{${labels}} 5`];
    const live = (connection: number, bytes: number): string => `${name}_live{${labels},_connection="${connection}"} ${bytes}`;
    const sum = (value: number) => ({ "istio_tcp_sent_bytes_total db": value });
    assert.deepEqual(await page([...ended, `# TYPE ${name}_live gauge`, live(1, 10), live(2, 100)]), sum(115));
    assert.deepEqual(await page([...ended, `# TYPE ${name}_live gauge`, live(2, 150), live(3, 1)]), sum(166));
    assert.deepEqual(await page(ended), sum(166));
  });

  it("have messages of gRPC, from calls by how many they had", async () => {
    const { page } = start();
    const line = (name: string, messages: string, calls: number): string =>
      `envoy_istio_${name}{grpc_response_status="0",reporter="source",_peer="db;store;db;;",_messages="${messages}"} ${calls}`;
    const both = await page([
      "# TYPE envoy_istio_messages_total counter",
      line("messages_total", "1,1", 5),
      line("messages_total", "1,10", 2),
      line("messages_total", "", 7),
    ]);
    assert.deepEqual(both, { "istio_request_messages_total db": 7, "istio_response_messages_total db": 25 });
    assert.deepEqual(await page([line("response_messages_total", "1,2", 3)]), {
      "istio_request_messages_total db": 7,
      "istio_response_messages_total db": 31,
    });
  });

  it("leave metrics of others alone that have the prefix", async () => {
    const { metrics } = start();
    const page = metrics.page({ all: true });
    for (const line of ["# TYPE envoy_istio_build gauge", 'envoy_istio_build{component="proxy"} 1']) page.take(line);
    assert.equal(await page.text(false), '# TYPE istio_build gauge\nistio_build{component="proxy"} 1\n');
  });
});
