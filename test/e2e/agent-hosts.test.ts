import { describe, expect, it } from "vitest";
import { type HostMesh, peerAuthentication, startHostMesh, WEB_PORT } from "../support/host-mesh.ts";
import { hostsImpossible } from "../support/netns.ts";
import { capturePackets, type Flow } from "../support/packet-capture.ts";
import { inStep } from "../support/sync.ts";
import { eventually } from "../support/wait.ts";

const SECRET_PATH = "/of-no-concern-to-others";
/** First bytes of a TLS connection: a record of the handshake. */
const HANDSHAKE = 0x16;

/** What the two machines said to each other for the service. */
const betweenThem = (flows: readonly Flow[], { hosts }: HostMesh): readonly Flow[] =>
  flows.filter(({ from, to }) => [from, to].some((end) => end === `${hosts.web.address}:${WEB_PORT}`));

const impossible = hostsImpossible();

describe.skipIf(impossible !== undefined)(`machines of their own (${impossible ?? "network namespaces with interception"})`, () => {
  it("talk in mutual TLS through agents, and strict ones refuse all else", async () => {
    const mesh = await startHostMesh();
    const { hosts, agents, istiod, target, callInPlaintext } = mesh;
    const call = () => hosts.client.ask("call", { ...target, path: SECRET_PATH });
    const capture = await capturePackets(hosts.web);
    expect(await call()).toMatchObject({ status: 200, by: "web" });

    // The wire: connections that are open already go on in TLS records, new ones begin with a handshake.
    process.kill(await agents.client.envoyPid(), "SIGKILL");
    await agents.client.ready();
    await eventually("the service answers again", async () => (await call()).status === 200);
    const heard = await eventually("the wiretap has a handshake", () => {
      const flows = betweenThem(capture.flows(), mesh);
      return flows.some(({ bytes }) => bytes[0] === HANDSHAKE) && flows;
    });
    for (const { bytes } of heard) expect([bytes.includes(SECRET_PATH), bytes.includes("HTTP/1.1")]).toEqual([false, false]);

    // Who is who: the server sees the client's name, and each shows its own.
    const hits = await hosts.web.ask("hits", { port: WEB_PORT });
    expect(hits.every(({ from }) => /127\.0\.0\.\d+$/.test(from))).toBe(true);
    expect(hits.at(-1)?.peer).toContain("URI=spiffe://cluster.local/ns/shop/sa/client");
    expect(hits.at(-1)?.peer).toContain("By=spiffe://cluster.local/ns/shop/sa/web");
    expect(await agents.web.admin("/certs")).toContain("spiffe://cluster.local/ns/shop/sa/web");

    expect(await callInPlaintext()).toBe("ECONNRESET");
    await istiod.write("conf/peers.yaml", peerAuthentication("PERMISSIVE"));
    await eventually("plaintext is taken", async () => (await callInPlaintext()) === "200");
    expect(await call()).toMatchObject({ status: 200 });
    // Had it been there before, the wiretap would have seen it.
    await eventually("the wiretap sees it now", () => betweenThem(capture.flows(), mesh).some(({ bytes }) => bytes.includes("HTTP/1.1")));

    // The server's metrics name the workload at the client's address.
    const page = await hosts.web.ask("fetch", { url: `http://127.0.0.1:${agents.web.statusPort}/stats/prometheus` });
    expect(page).toMatch(
      /^istio_requests_total\{.*reporter="destination".*source_workload="buyer".*destination_workload="web".*"mutual_tls"\} /m,
    );
  });

  it("go on when istiod is killed, when an agent is, and when Envoy starts anew meanwhile", async () => {
    const { hosts, agents, istiod, target } = await startHostMesh();
    const calls = async (count: number): Promise<readonly number[]> => {
      const statuses: number[] = [];
      for (let turn = 0; turn < count; turn++) statuses.push((await hosts.client.ask("call", target)).status);
      return statuses;
    };
    const allGood = (count: number): readonly number[] => Array.from({ length: count }, () => 200);
    await Promise.all([inStep(istiod, "client.shop"), inStep(istiod, "web.shop")]);
    await istiod.stop("SIGKILL");
    expect(await calls(20)).toEqual(allGood(20));
    for (const agent of [agents.client, agents.web]) {
      const before = await agent.envoyPid();
      process.kill(before, "SIGKILL");
      await eventually("another Envoy runs", async () => (await agent.envoyPid()) !== before);
      await agent.ready();
    }
    await eventually("calls are answered", async () => (await calls(1))[0] === 200);
    expect(await calls(20)).toEqual(allGood(20));
    await agents.client.stop("SIGKILL");
    expect(await calls(20)).toEqual(allGood(20));
    // Its key was in memory alone: the next agent needs a CA.
    await istiod.start();
    agents.client.start();
    await agents.client.ready();
    await eventually("calls are answered", async () => (await calls(1))[0] === 200);
    await eventually("the agents are connected", async () => (await istiod.metric("pilot_xds")) === 2);
    expect(await calls(5)).toEqual(allGood(5));
  });
});
