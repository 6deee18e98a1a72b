import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { describe, expect, it } from "vitest";
import { manualClock } from "../../test/support/manual-clock.ts";
import { isBlockedAddress } from "../base/blocked-address.ts";
import { createFetchText } from "./fetch-text.ts";
import { cachedKeys, discoveredKeys } from "./key-source.ts";
import { keySetText, tokenKeys } from "./token-fixture.ts";

const SET = keySetText(tokenKeys("ES256"));

describe("fetched keys", () => {
  it("are kept, and asked for by one at a time", async () => {
    const clock = manualClock();
    let reads = 0;
    const read = async (): Promise<string> => {
      reads++;
      return SET;
    };
    const source = cachedKeys({ clock, read });
    await Promise.all(Array.from({ length: 50 }, () => source.keys(false)));
    await source.keys(false);
    expect(reads).toBe(1);
  });

  it("are asked for again for a key that is not known, but not as often as strangers like", async () => {
    const clock = manualClock();
    let reads = 0;
    const read = async (): Promise<string> => {
      reads++;
      return SET;
    };
    const source = cachedKeys({ clock, read });
    for (let i = 0; i < 100; i++) await source.keys(true);
    expect(reads).toBe(1);
    clock.advance(5_000);
    for (let i = 0; i < 100; i++) await source.keys(true);
    expect(reads).toBe(2);
  });

  it("that fail to come deny, and do not fall back", async () => {
    const clock = manualClock();
    const source = cachedKeys({ clock, read: () => Promise.reject(new Error("no route")) });
    await expect(source.keys(false)).rejects.toThrow("no route");
    await expect(source.keys(true)).rejects.toThrow("no route");
  });

  it("outlive a short outage of the issuer, not a long one", async () => {
    const clock = manualClock();
    let away = false;
    const source = cachedKeys({ clock, read: () => (away ? Promise.reject(new Error("away")) : Promise.resolve(SET)) });
    await source.keys(false);
    away = true;
    clock.advance(30 * 60_000);
    expect(await source.keys(false)).toHaveLength(1);
    clock.advance(31 * 60_000);
    await expect(source.keys(false)).rejects.toThrow("away");
    away = false;
    clock.advance(5_000);
    expect(await source.keys(false)).toHaveLength(1);
  });

  it("are found through the discovery document, if it is the issuer's own", async () => {
    const pages: Record<string, string> = {
      "https://id.test/.well-known/openid-configuration": JSON.stringify({ issuer: "https://id.test", jwks_uri: "https://id.test/keys" }),
      "https://id.test/keys": SET,
      "https://other.test/.well-known/openid-configuration": JSON.stringify({
        issuer: "https://id.test",
        jwks_uri: "https://id.test/keys",
      }),
    };
    const get = (url: string): Promise<string> => Promise.resolve(pages[url] ?? "");
    expect(await discoveredKeys("https://id.test", get, manualClock()).keys(false)).toHaveLength(1);
    await expect(discoveredKeys("https://other.test", get, manualClock()).keys(false)).rejects.toThrow("another issuer");
  });
});

describe("addresses that are never called", () => {
  it.for([
    "127.0.0.1",
    "127.9.9.9",
    "0.0.0.0",
    "169.254.169.254",
    "224.0.0.1",
    "255.255.255.255",
    "100.100.100.200",
    "168.63.129.16",
    "::",
    "::1",
    "::ffff:127.0.0.1",
    "::ffff:7f00:1",
    "::127.0.0.1",
    "192.0.0.192",
    "64:ff9b::a9fe:a9fe",
    "64:ff9b:1::7f00:1",
    "64:ff9b:1:2::169.254.169.254",
    "::ffff:0:127.0.0.1",
    "2002:7f00:1::",
    "fe80::1",
    "ff02::1",
    "fe80::1%eth0",
    "fd00:ec2::254",
    "fd00:ec2::23",
    "fd20:ce::254",
    "fd00:c1::a9fe:a9fe",
    "fd00:42::42",
    "not an address",
  ])("%s", (address) => expect(isBlockedAddress(address)).toBe(true));

  it.for(["10.0.0.1", "192.168.1.1", "8.8.8.8", "2001:db8::1", "fd12::1", "64:ff9b::808:808", "64:ff9b:1::808:808"])(
    "but %s is",
    (address) => expect(isBlockedAddress(address)).toBe(false),
  );
});

describe("fetching", () => {
  it("refuses loopback by address and by name, however it is spelled, and plain http, before a byte is sent", async () => {
    let hits = 0;
    const server = createServer((_, response) => void response.end(SET));
    server.on("connection", () => hits++);
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    const { port } = server.address() as AddressInfo;
    for (const host of ["127.0.0.1", "2130706433", "0x7f.1", "localhost", "[::1]", "[::ffff:127.0.0.1]", "0"])
      await expect(createFetchText({})(`https://${host}:${port}/keys`)).rejects.toThrow("is not called");
    await expect(createFetchText({})(`http://example.com:${port}/keys`)).rejects.toThrow("is not an https URL");
    expect(hits).toBe(0);
    server.close();
  });
});
