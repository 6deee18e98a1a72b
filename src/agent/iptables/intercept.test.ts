import assert from "node:assert/strict";
import { describe, it } from "vitest";
import { applyInterception } from "./intercept.ts";
import { interceptOptions, readFlags } from "./intercept-flags.ts";
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
