import { fromJson, type JsonObject } from "@bufbuild/protobuf";
import { describe, expect, it } from "vitest";
import { DestinationRuleSchema, LoadBalancerSettings_SimpleLB as Lb } from "../../gen/istio/networking/v1alpha3/destination_rule_pb.js";
import { portPolicy, servicePolicy } from "./traffic-policy.ts";

const ruleOf = (json: JsonObject) => fromJson(DestinationRuleSchema, json);

const rule = ruleOf({
  host: "web",
  trafficPolicy: {
    loadBalancer: { simple: "RANDOM" },
    connectionPool: { tcp: { maxConnections: 1 } },
    tls: { mode: "DISABLE" },
    portLevelSettings: [{ port: { number: 81 }, loadBalancer: { simple: "ROUND_ROBIN" } }],
  },
  subsets: [
    { name: "none" },
    { name: "block", trafficPolicy: { connectionPool: { http: { maxRetries: 7 } } } },
    { name: "port", trafficPolicy: { portLevelSettings: [{ port: { number: 80 }, tls: { mode: "SIMPLE" } }] } },
  ],
});

const subset = (name: string) => rule.subsets.find((one) => one.name === name);
const simple = (policy: ReturnType<typeof portPolicy>) => policy.loadBalancer?.lbPolicy.value;

describe("policy of a port", () => {
  it("is the host's", () => {
    expect(simple(portPolicy(rule, 80))).toBe(Lb.RANDOM);
    expect(portPolicy(rule, 80).connectionPool?.tcp?.maxConnections).toBe(1);
  });

  it("inherits nothing where the port has settings of its own", () => {
    const policy = portPolicy(rule, 81);
    expect(simple(policy)).toBe(Lb.ROUND_ROBIN);
    expect(policy.connectionPool).toBeUndefined();
    expect(policy.tls).toBeUndefined();
  });

  it("is inherited by a subset that says nothing", () => expect(portPolicy(rule, 81, subset("none"))).toEqual(portPolicy(rule, 81)));

  it("is replaced block by block by a subset", () => {
    const policy = portPolicy(rule, 80, subset("block"));
    expect(policy.connectionPool?.http?.maxRetries).toBe(7);
    expect(policy.connectionPool?.tcp).toBeUndefined();
    expect(simple(policy)).toBe(Lb.RANDOM);
  });

  it("is replaced whole by a subset's settings for the port, and only for that port", () => {
    const policy = portPolicy(rule, 80, subset("port"));
    expect(policy.tls?.mode).toBe(1);
    expect(policy.loadBalancer).toBeUndefined();
    expect(simple(portPolicy(rule, 82, subset("port")))).toBe(Lb.RANDOM);
  });

  it("is empty without a rule", () => expect(portPolicy(undefined, 80)).toEqual({}));
});

describe("policy of a service", () => {
  const affine = { clientAffinity: true } as const;
  const balancer = (json: JsonObject) => portPolicy(ruleOf({ host: "web", trafficPolicy: { loadBalancer: json } }), 80);
  const byAddress = { case: "useSourceIp", value: true };
  const hashKey = (policy: ReturnType<typeof portPolicy>) =>
    policy.loadBalancer?.lbPolicy.case === "consistentHash" ? policy.loadBalancer.lbPolicy.value.hashKey : undefined;

  it("is the rule's where the Service asks for nothing", () => {
    const said = balancer({ localityLbSetting: { enabled: true } });
    expect(servicePolicy({}, said)).toBe(said);
  });

  it("hashes the client's address where the Service keeps clients and no algorithm is chosen", () => {
    expect(servicePolicy(affine, {})).toEqual(balancer({ consistentHash: { useSourceIp: true } }));
    expect(hashKey(servicePolicy(affine, balancer({ simple: "UNSPECIFIED" })))).toEqual(byAddress);
    expect(hashKey(servicePolicy(affine, portPolicy(rule, 80, subset("port"))))).toEqual(byAddress);
  });

  it("keeps what else the rule says", () => {
    const policy = servicePolicy(affine, balancer({ localityLbSetting: { enabled: true, failover: [{ from: "eu", to: "us" }] } }));
    expect(hashKey(policy)).toEqual(byAddress);
    expect(policy.loadBalancer?.localityLbSetting?.failover).toMatchObject([{ from: "eu", to: "us" }]);
    expect(servicePolicy(affine, portPolicy(rule, 80, subset("port"))).tls?.mode).toBe(1);
  });

  it.for([{ simple: "RANDOM" }, { simple: "PASSTHROUGH" }, { consistentHash: { httpHeaderName: "x-user" } }])(
    "leaves the rule's choice %j",
    (json) => {
      const said = balancer(json);
      expect(servicePolicy(affine, said)).toBe(said);
    },
  );
});
