import { create, fromBinary, toBinary } from "@bufbuild/protobuf";
import { expect, it } from "vitest";
import { BootstrapSchema } from "../../gen/envoy/config/bootstrap/v3/bootstrap_pb.js";
import { takeApart } from "./given-bootstrap.ts";

it("takes what istiod says about running Envoy out of a bootstrap, and leaves the rest as it is", () => {
  const init = { flagsPath: "x", staticResources: { clusters: [{ name: "a" }] } };
  const rest = create(BootstrapSchema, init);
  const metadata = { other: { nested: true }, RUN_PROXY_CONFIG: '{"concurrency":2}', empty: "" };
  const given = create(BootstrapSchema, { ...init, node: { id: "nobody", metadata } });
  const { bootstrap, proxyConfig } = takeApart(toBinary(BootstrapSchema, given));
  expect(proxyConfig).toBe('{"concurrency":2}');
  expect(fromBinary(BootstrapSchema, bootstrap)).toEqual(rest);
  expect(takeApart(toBinary(BootstrapSchema, rest)).proxyConfig).toBe("");
});
