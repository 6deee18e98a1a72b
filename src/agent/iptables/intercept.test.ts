import assert from "node:assert/strict";
import { describe, it } from "vitest";
import { applyInterception } from "./intercept.ts";
import { interceptOptions, readFlags } from "./intercept-flags.ts";
import { interceptRules } from "./intercept-rules.ts";
import { familiesOf } from "./iptables-command.ts";
import type { RunTool } from "./run-tool.ts";

const OPTIONS = interceptOptions(readFlags([], {}), { env: {}, resolvers: [], proxyUser: "1337" });
const FAMILIES = [4, 6] as const;

/** A machine on which programs do as told, by the words of the command; all others end well and say nothing. */
function machine(answers: Readonly<Record<string, { readonly status: number | undefined; readonly stdout?: string }>>): {
  readonly run: RunTool;
  readonly ran: string[];
} {
  const ran: string[] = [];
  return {
    ran,
    async run(command, args, input) {
      const words = [command, ...args].join(" ");
      ran.push(input === undefined ? words : `${words} < ${input.split("\n").filter((line) => line.startsWith("-")).length} rules`);
      const { status, stdout = "" } = answers[words] ?? { status: 0 };
      return { status, stdout, stderr: status === 0 ? "" : "refused" };
    },
  };
}

const restores = (ran: readonly string[]): readonly string[] => ran.filter((words) => words.includes("restore"));

describe("applying rules", () => {
  it("tries everything before it changes anything", async () => {
    const { run, ran } = machine({ "ip6tables-restore --noflush -w 30 --test": { status: 2 } });
    await assert.rejects(applyInterception(OPTIONS, { run, families: FAMILIES }), /ip6tables-restore failed: refused/);
    assert.deepEqual(
      restores(ran).map((words) => words.includes("--test")),
      [true, true],
    );
    assert.deepEqual(
      ran.filter((words) => words.startsWith("ip ")),
      [],
    );
  });

  it("takes the one family back where the other fails", async () => {
    const inForce = "*nat\n:ISTIO_OUTPUT - [0:0]\n-A OUTPUT -j ISTIO_OUTPUT\nCOMMIT\n";
    let applied = false;
    const { run, ran } = machine({ "ip6tables-restore --noflush -w 30": { status: 1 } });
    const remembering: RunTool = async (command, args, input) => {
      const result = await run(command, args, input);
      if (command === "iptables-save") return { ...result, stdout: applied ? inForce : "" };
      applied ||= command === "iptables-restore" && !args.includes("--test");
      return result;
    };
    await assert.rejects(applyInterception(OPTIONS, { run: remembering, families: FAMILIES }), /ip6tables-restore failed/);
    assert.equal(restores(ran).at(-1), "iptables-restore --noflush -w 30 < 2 rules");
  });

  it("takes back what it added where routes cannot be made", async () => {
    const transparent = interceptOptions(readFlags(["-m", "TPROXY"], {}), { env: {}, resolvers: [], proxyUser: "1337" });
    const { run, ran } = machine({ "ip -6 route replace local default dev lo table 133": { status: 2 } });
    await assert.rejects(applyInterception(transparent, { run, families: FAMILIES }), /ip -6 route replace/);
    assert.deepEqual(
      restores(ran).filter((words) => !words.includes("--test")),
      [],
    );
    assert.ok(ran.includes("ip -4 route del local default dev lo table 133"));
    assert.ok(ran.includes("ip -6 address del ::6/128 dev lo"));
  });

  it("takes what works of the variants, and says what is missing", async () => {
    const { run, ran } = machine({ "iptables-save": { status: undefined }, "iptables-nft-save": { status: 3 } });
    await applyInterception(OPTIONS, { run, families: [4] });
    assert.match(restores(ran)[0] ?? "", /^iptables-legacy-restore /);
    const none = machine({ "iptables-nft-save": { status: undefined } });
    await assert.rejects(applyInterception(OPTIONS, { run: none.run, families: [4], binary: "nft" }), /iptables-restore is not installed/);
  });
});

describe("flags of interception", () => {
  const read = (args: readonly string[], env: Readonly<Record<string, string>> = {}) =>
    interceptOptions(readFlags(args, env), { env, resolvers: ["10.0.0.10"], proxyUser: "1337" });

  it("are read in every form that Go's programs take", () => {
    const wanted = { inboundPorts: [80], dnsServers: ["10.0.0.10"], mode: "TPROXY" };
    for (const args of [
      ["-b", "80", "--redirect-dns", "-m", "TPROXY"],
      ["-b=80", "--redirect-dns=true", "-mTPROXY"],
      ["--istio-inbound-ports=80", "--redirect-dns=1", "--istio-inbound-interception-mode", "TPROXY"],
    ])
      assert.deepEqual({ ...read(args), ...wanted }, read(args), args.join(" "));
  });

  it("are those of Istio's log, too, which change nothing", () => {
    const log = ["--log_as_json=false", "--log_target=stderr", "--log_caller=all", "--log_stacktrace_level", "default:none", "--vklog=9"];
    assert.deepEqual(read(log), read([]));
  });

  it("redirect where no mode is given", () => assert.equal(read(["-m", ""]).mode, "REDIRECT"));

  it("may be variables, of which those that other programs read too win", () => {
    assert.deepEqual(read([], { REDIRECT_DNS: "false", ISTIO_META_DNS_CAPTURE: "true" }).dnsServers, ["10.0.0.10"]);
    assert.equal(read([], { INVALID_DROP: "true", DROP_INVALID: "false" }).dropInvalid, true);
    assert.equal(read([], { DROP_INVALID: "true" }).dropInvalid, true);
  });

  it("cover IPv6 where the machine has nothing else, or both are wanted and there", () => {
    const of = (...addresses: readonly string[]) => addresses.map((address) => ({ interface: "eth0", address }));
    for (const [dualStack, interfaces, families] of [
      ["", of("10.0.0.1", "fd00::1"), [4]],
      ["", of("fd00::1"), [4, 6]],
      ["true", of("10.0.0.1", "fd00::1"), [4, 6]],
      ["true", of("10.0.0.1"), [4]],
      ["true", undefined, [4, 6]],
    ] as const)
      assert.deepEqual(familiesOf(dualStack, interfaces), families);
  });

  it("keep questions for names from the local rules of both families, whichever has the servers", () => {
    const nat = interceptRules(read(["--redirect-dns"]), 6).find(({ table }) => table === "nat");
    assert.ok(nat?.chains.get("ISTIO_OUTPUT")?.includes("-o lo -p tcp -m tcp ! --dport 53 -j RETURN"));
    assert.ok(!nat?.chains.get("ISTIO_OUTPUT")?.includes("-j ISTIO_OUTPUT_DNS"));
  });
});
