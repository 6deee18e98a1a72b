import { fromBinary } from "@bufbuild/protobuf";
import { describe, expect, it } from "vitest";
import { NameTableSchema } from "../../src/gen/istio/networking/nds/v1/name_table_pb.js";
import { NAME_TABLE_TYPE } from "../../src/wire/type-urls.ts";
import { startIstiod } from "../support/istiod.ts";
import { eventually } from "../support/wait.ts";
import { type Answer, subscribe } from "../support/xds-subscriber.ts";

const service = (address: string, endpoint: string): string => `
apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: {name: web, namespace: shop}
spec:
  hosts: [web.example.com]
  addresses: [${address}]
  resolution: STATIC
  ports: [{number: 80, name: http, protocol: HTTP}]
  endpoints: [{address: ${endpoint}}]
`;

const node = { id: "sidecar~10.9.9.9~agent.shop~shop.svc.cluster.local", metadata: { NAMESPACE: "shop", DNS_CAPTURE: "true" } };

/** What the last answer says the hosts resolve to. */
function ipsIn(answers: readonly Answer[]): Readonly<Record<string, readonly string[]>> | undefined {
  const table = answers.at(-1)?.resources[0];
  if (table === undefined) return undefined;
  const { table: hosts } = fromBinary(NameTableSchema, table.value);
  return Object.fromEntries(Object.entries(hosts).map(([host, { ips }]) => [host, ips]));
}

describe.each(["sotw", "delta"] as const)("an agent that asks for names (%s)", (variant) => {
  it("is sent its table, again when a name changes, and not when an endpoint does", async () => {
    const istiod = await startIstiod({ files: { "conf/web.yaml": service("10.3.0.1", "10.1.0.1") } });
    const answers = subscribe({ port: istiod.grpcPort, variant, node, typeUrl: NAME_TABLE_TYPE });
    await eventually("the table", () => ipsIn(answers));
    expect(ipsIn(answers)).toEqual({ "web.example.com": ["10.3.0.1"] });
    await istiod.write("conf/web.yaml", service("10.3.0.1", "10.1.0.2"));
    await eventually("the endpoint is in force", async () => (await (await istiod.debug("/debug/endpointz")).text()).includes("10.1.0.2"));
    await istiod.write("conf/web.yaml", service("10.3.0.2", "10.1.0.2"));
    await eventually("the new address", () => ipsIn(answers)?.["web.example.com"]?.[0] === "10.3.0.2");
    expect(answers).toHaveLength(2);
    const page = await (await istiod.debug("/debug/ndsz?proxyID=agent.shop")).json();
    expect(page).toMatchObject({ configs: [{ table: { "web.example.com": { ips: ["10.3.0.2"], registry: "External" } } }] });
  });
});
