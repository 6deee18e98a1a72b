import assert from "node:assert/strict";
import fc from "fast-check";
import { describe, it } from "vitest";
import { interceptOptions, readFlags } from "../../src/agent/iptables/intercept-flags.ts";
import { interceptRules, OWN_CHAINS } from "../../src/agent/iptables/intercept-rules.ts";
import { readSaved, restoreText, sameRules } from "../../src/agent/iptables/restore-text.ts";
import { strayFolders } from "../support/golden.ts";
import { holds } from "../support/holds.ts";
import { ruleCases } from "./rule-cases.ts";

const optionsOf = (args: readonly string[], env: Readonly<Record<string, string>> = {}) =>
  interceptOptions(readFlags(args, env), { env, resolvers: [], proxyUser: "1337" });

/** What `iptables-save` prints where nothing but ours is in force. */
const saved = (text: string): string => text.replaceAll(/^(\*\w+)$/gm, "$1\n:PREROUTING ACCEPT [0:0]\n:OUTPUT ACCEPT [0:0]");

describe("rules of interception", () => {
  for (const { name, options, check } of ruleCases())
    it(name, () => {
      const text = ([4, 6] as const).map((family) => restoreText(interceptRules(options, family)));
      check({ "iptables.txt": text[0] ?? "", "ip6tables.txt": text[1] ?? "" });
    });

  it("has no outputs without an input", () => assert.deepEqual(strayFolders(import.meta.dirname), []));

  it("only ever declares chains of its own", () => {
    for (const { options } of ruleCases())
      for (const { chains } of interceptRules(options, 4)) for (const chain of chains.keys()) assert.ok(OWN_CHAINS.includes(chain), chain);
  });
});

describe("the way from what is in force to what is wanted", () => {
  it("finds its own rules again", () => {
    for (const { options } of ruleCases()) {
      const wanted = interceptRules(options, 4);
      assert.ok(sameRules(readSaved(saved(restoreText(wanted))), wanted));
    }
  });

  it("takes away rules that were there twice, and chains that are not wanted any more, and leaves those of others", () => {
    const inForce = readSaved(`*nat
:PREROUTING ACCEPT [0:0]
:OUTPUT ACCEPT [4:240]
:DOCKER - [0:0]
:ISTIO_DIVERT - [0:0]
:ISTIO_OUTPUT - [0:0]
-A OUTPUT ! -d 127.0.0.0/8 -m addrtype --dst-type LOCAL -j DOCKER
-A OUTPUT -p tcp -j ISTIO_OUTPUT
-A OUTPUT -j ISTIO_OUTPUT
-A DOCKER -i docker0 -j RETURN
-A ISTIO_OUTPUT -d 127.0.0.1/32 -j RETURN
COMMIT
`);
    const text = restoreText(
      [{ table: "nat", chains: new Map([["ISTIO_OUTPUT", ["-j RETURN"]]]), jumps: ["OUTPUT -j ISTIO_OUTPUT"] }],
      inForce,
    );
    assert.equal(
      text,
      `*nat
:ISTIO_OUTPUT - [0:0]
:ISTIO_DIVERT - [0:0]
-D OUTPUT -p tcp -j ISTIO_OUTPUT
-D OUTPUT -j ISTIO_OUTPUT
-A ISTIO_OUTPUT -j RETURN
-A OUTPUT -j ISTIO_OUTPUT
-X ISTIO_DIVERT
COMMIT
`,
    );
    assert.doesNotMatch(text, /DOCKER/);
  });

  it("needs nothing where there is nothing", () => assert.equal(restoreText([], []), ""));
});

describe("flags and variables", () => {
  it("takes a variable, before it a flag, before it nothing", () => {
    assert.deepEqual(optionsOf([], { ISTIO_INBOUND_PORTS: "81" }).inboundPorts, [81]);
    assert.deepEqual(optionsOf([], { INBOUND_PORTS_INCLUDE: "82", ISTIO_INBOUND_PORTS: "81" }).inboundPorts, [81]);
    assert.deepEqual(optionsOf(["--istio-inbound-ports=83"], { ISTIO_INBOUND_PORTS: "81" }).inboundPorts, [83]);
    assert.equal(optionsOf(["-b", ""], { ISTIO_INBOUND_PORTS: "*" }).inboundPorts.length, 0);
    assert.equal(optionsOf([]).inboundPorts, "all");
  });

  it("switches on and off as Go's flags do", () => {
    assert.equal(optionsOf(["--drop-invalid"]).dropInvalid, true);
    assert.equal(optionsOf(["--drop-invalid=false"], { INVALID_DROP: "true" }).dropInvalid, false);
    assert.equal(optionsOf([], { INVALID_DROP: "true" }).dropInvalid, true);
  });

  it("writes ranges and names as iptables prints them", () => {
    const ids = { userIds: new Map([["proxy", "13"]]), groupIds: new Map([["java", "71"]]) };
    const env = { ISTIO_OUTBOUND_IPV4_LOOPBACK_CIDR: "127.0.0.1/8", ISTIO_OUTBOUND_OWNER_GROUPS: "java,202,unknown" };
    const { loopback4, proxyUsers, proxyGroups, ownerGroups } = interceptOptions(readFlags(["-u", "proxy,0", "-g", "java"], env), {
      env,
      resolvers: [],
      proxyUser: "1337",
      ...ids,
    });
    assert.deepEqual(
      { loopback4, proxyUsers, proxyGroups, ownerGroups },
      { loopback4: "127.0.0.0/8", proxyUsers: ["13", "0"], proxyGroups: ["71"], ownerGroups: ["71", "202", "unknown"] },
    );
  });

  it("names what it does not understand", () => {
    const bad: readonly (readonly [readonly string[], RegExp])[] = [
      [["-b", "80,http"], /istio-inbound-ports.*"http"/],
      [["-b", "70000"], /istio-inbound-ports/],
      [["-i", "10.0.0.0/33"], /istio-service-cidr/],
      [["-x", "*"], /istio-service-exclude-cidr/],
      [["-m", "NONE"], /mode of interception/],
      [["-u", "root -j ACCEPT"], /proxy-uid/],
      [["-c", "eth0\n-A INPUT"], /istio-exclude-interfaces/],
      [["--no-such-flag"], /no-such-flag/],
      [["stray"], /stray/],
    ];
    for (const [args, message] of bad) assert.throws(() => optionsOf(args), message);
  });

  it("never lets a value become more than one word of a rule", () => {
    const flags = ["-u", "-g", "-b", "-d", "-c", "-i", "-x", "-q", "-o", "-k"];
    holds(
      fc.property(fc.constantFrom(...flags), fc.oneof(fc.string(), fc.stringMatching(/^[a-z0-9,. /:*\n-]*$/)), (flag, value) => {
        let options: ReturnType<typeof optionsOf>;
        try {
          options = optionsOf([flag, value]);
        } catch {
          return;
        }
        const plain = restoreText(interceptRules(optionsOf([]), 4));
        const chains = (text: string): number => text.split("\n").filter((line) => line.startsWith(":") || line.startsWith("*")).length;
        const text = restoreText(interceptRules(options, 4));
        assert.equal(chains(text), chains(plain));
        for (const line of text.split("\n")) assert.match(line, /^(|\*\w+|:\w+ - \[0:0\]|-A [A-Z_]+ [\w !./:,+@-]+|COMMIT)$/);
      }),
    );
  });
});
