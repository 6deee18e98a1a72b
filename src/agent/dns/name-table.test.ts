import assert from "node:assert/strict";
import { create, toBinary } from "@bufbuild/protobuf";
import fc from "fast-check";
import { describe, it } from "vitest";
import { holds } from "../../../test/support/holds.ts";
import { NameTableSchema } from "../../gen/istio/networking/nds/v1/name_table_pb.js";
import { buildLookup, readNameTable } from "./name-table.ts";
import { parseResolvConf } from "./resolv-conf.ts";

const kubernetes = (shortname: string, namespace: string, ...ips: string[]) => ({ ips, registry: "Kubernetes", shortname, namespace });
const external = (...ips: string[]) => ({ ips, registry: "External" });

const TABLE = {
  "web.shop.svc.cluster.local": kubernetes("web", "shop", "10.0.0.1"),
  "cart.bank.svc.cluster.local": kubernetes("cart", "bank", "10.0.0.2", "fd00::2"),
  "far.shop.svc.other.domain": kubernetes("far", "shop", "10.0.0.3"),
  "db.example.com": external("240.240.0.1"),
  "*.example.org": external("240.240.0.2"),
  "*.a.example.org": external("240.240.0.3"),
  "broken.example.com": external("not an address"),
};

const lookup = (search = "shop.svc.cluster.local") =>
  buildLookup(readNameTable(toBinary(NameTableSchema, create(NameTableSchema, { table: TABLE }))), {
    namespace: "shop",
    domain: "svc.cluster.local",
    search,
  });

const found = (name: string, search?: string): string => {
  const one = lookup(search).find(name);
  if (one === undefined) return "unknown";
  return [
    ...(one.alias === undefined ? [] : [`alias of ${one.alias}`]),
    ...one.v4.map((ip) => ip.join(".")),
    ...one.v6.map((ip) => `v6:${ip.length}`),
  ].join(" ");
};

describe("look-up of names", () => {
  const cases: readonly (readonly [asked: string, want: string])[] = [
    ["web.shop.svc.cluster.local", "10.0.0.1"],
    ["WEB.Shop.svc.cluster.local", "10.0.0.1"],
    ["web.shop.svc", "10.0.0.1"],
    ["web.shop", "10.0.0.1"],
    ["web", "10.0.0.1"],
    ["cart.bank", "10.0.0.2 v6:16"],
    ["cart", "unknown"],
    ["cart.shop.svc.cluster.local", "unknown"],
    ["far.shop.svc.other.domain", "10.0.0.3"],
    ["far.shop", "unknown"],
    ["far", "unknown"],
    ["db.example.com", "240.240.0.1"],
    ["db.example.com.shop.svc.cluster.local", "alias of db.example.com 240.240.0.1"],
    ["cart.bank.shop.svc.cluster.local", "alias of cart.bank 10.0.0.2 v6:16"],
    ["web.shop.svc.cluster.local.shop.svc.cluster.local", "alias of web.shop.svc.cluster.local 10.0.0.1"],
    ["x.example.org", "240.240.0.2"],
    ["y.x.example.org", "240.240.0.2"],
    ["x.a.example.org", "240.240.0.3"],
    ["example.org", "unknown"],
    ["x.example.org.shop.svc.cluster.local", "alias of x.example.org 240.240.0.2"],
    ["broken.example.com", "unknown"],
    ["", "unknown"],
  ];
  for (const [asked, want] of cases) it(`${asked || "the root"}: ${want}`, () => assert.equal(found(asked), want));

  it("expands nothing where the machine searches nowhere", () =>
    assert.equal(found("db.example.com.shop.svc.cluster.local", ""), "unknown"));

  it("takes no bytes that are no table, and says so", () =>
    holds(
      fc.property(fc.uint8Array({ maxLength: 200 }), (bytes) => {
        try {
          readNameTable(bytes);
        } catch (error) {
          assert.ok(error instanceof Error);
        }
      }),
    ));
});

describe("resolv.conf", () => {
  it("is read as resolvers read it", () =>
    assert.deepEqual(
      parseResolvConf(
        "# of a pod\nnameserver 10.96.0.10\nnameserver fd00::a ; second\nnameserver nonsense\nsearch Shop.svc.cluster.local. svc.cluster.local\noptions ndots:5\n",
      ),
      {
        servers: ["10.96.0.10", "fd00::a"],
        search: ["shop.svc.cluster.local", "svc.cluster.local"],
      },
    ));
});
