import assert from "node:assert/strict";
import { describe, it } from "vitest";
import { fullNames, parseTargetName } from "./target-name.ts";

describe("parseTargetName", () => {
  it("reads a host and a port, and an IPv6 address in brackets", () => {
    assert.deepEqual(parseTargetName("greeter.shop:7070"), { host: "greeter.shop", port: 7070 });
    assert.deepEqual(parseTargetName("[::]:50051"), { host: "::", port: 50051 });
  });

  it("knows no host without a port", () => {
    for (const name of ["greeter", "greeter:", ":80", "greeter:0", "greeter:http", "greeter:70000", "greeter:1.5", ""])
      assert.equal(parseTargetName(name), undefined, name);
  });
});

describe("fullNames", () => {
  const domain = "shop.svc.cluster.local";

  it("completes a name as the workload's resolver would, after the name itself", () => {
    assert.deepEqual(fullNames("greeter", domain), ["greeter", "greeter.shop.svc.cluster.local"]);
    assert.deepEqual(fullNames("greeter.yard", domain), ["greeter.yard", "greeter.yard.svc.cluster.local"]);
    assert.deepEqual(fullNames("greeter.yard.svc", domain), ["greeter.yard.svc", "greeter.yard.svc.cluster.local"]);
  });

  it("leaves full names, addresses and foreign domains alone", () => {
    for (const name of ["greeter.yard.svc.cluster.local", "api.shop.example.com", "2001:db8::1"])
      assert.deepEqual(fullNames(name, domain), [name]);
    assert.deepEqual(fullNames("greeter", "example.com"), ["greeter"]);
  });
});
