import assert from "node:assert/strict";
import { describe, it } from "vitest";
import { readArguments } from "../../src/cli/arguments.ts";
import type { Flag } from "../../src/cli/command.ts";
import { COMMANDS } from "../../src/cli/commands/index.ts";
import { istioctl } from "./cli-host.ts";

describe("bad usage is one sentence on stderr and exit status 2", () => {
  const table: readonly [words: string, sentence: RegExp][] = [
    ["frobnicate", /no command "frobnicate"; `istioctl --help` lists them$/m],
    ["proxy-statsu web.shop", /no command "proxy-statsu"; did you mean `proxy-status`\?$/m],
    ["vv", /no command "vv"; did you mean `v`\?$/m],
    ["help frobnicate", /no command "frobnicate"/],
    ["x workload --help", /"x workload" is the beginning of `x workload entry configure` and `x workload token`; say which$/m],
    ["experimental ca", /"experimental ca" is the beginning of `x ca rotate`; say which$/m],
    ["x workload tokn", /no command "x workload tokn"; did you mean `x workload token`\?$/m],
    ["validate --frob a.yaml", /no flag --frob/],
    ["validate", /name files or directories/],
    ["validate -f", /-f needs a value/],
    ["validate - -", /standard input can be read only once/],
    ["validate a.yaml -o xml", /--output must be one of text, json, yaml/],
    ["proxy-status a b", /name one proxy/],
    ["proxy-status --istiod http://a --istiod http://b", /--istiod is given twice/],
    ["proxy-status --istiod ftp://a", /not an address of istiod/],
    ["proxy-config", /say what to show/],
    ["proxy-config bootstrap web.shop", /not "bootstrap"/],
    ["proxy-config cluster", /name one proxy/],
    ["proxy-config cluster web.shop --why=yes", /--why takes no value/],
    ["proxy-config listener web.shop --port 99999", /--port must be a port/],
    ["proxy-config cluster web.shop --direction up", /--direction must be one of inbound, outbound/],
    ["bootstrap web", /everything is given by flags/],
    ["bootstrap --type waypoint", /--type must be one of/],
    ["bootstrap --labels app", /KEY=VALUE/],
    ["bootstrap --address 15010", /--address/],
    ["bootstrap --meta PROXY_CONFIG={", /begins like JSON/],
    ["bootstrap --server-name a", /only with --root-cert/],
  ];
  for (const [words, sentence] of table) {
    it(`istioctl ${words}`, async () => {
      const { status, out, err } = await istioctl(words.split(" "));
      assert.match(err, sentence);
      assert.equal(status, 2);
      assert.equal(out, "");
      assert.equal(err.trim().split("\n").length, 1);
    });
  }
});

describe("help", () => {
  it("lists every command", async () => {
    for (const words of [[], ["--help"], ["-h"], ["help"]]) {
      const { status, out } = await istioctl(words);
      assert.equal(status, 0);
      for (const { name } of COMMANDS) assert.ok(out.includes(name), name);
    }
  });

  for (const { name, aliases, flags } of COMMANDS) {
    it(`of ${name} names its flags and is found under its aliases`, async () => {
      for (const word of [name, ...aliases]) {
        const { status, out } = await istioctl([...word.split(" "), "--help"]);
        assert.equal(status, 0);
        assert.deepEqual(await istioctl(["help", ...word.split(" ")]), { status, out, err: "" });
        for (const flag of flags) assert.ok(out.includes(`--${flag.name}`), flag.name);
      }
    });
  }

  it("no two commands share a word, and no two flags of one command", () => {
    const words = COMMANDS.flatMap(({ name, aliases }) => [name, ...aliases]);
    assert.equal(new Set(words).size, words.length);
    for (const { flags } of COMMANDS) {
      const own = flags.flatMap(({ name, short }) => (short === undefined ? [name] : [name, short]));
      const names = [...own, ...(own.includes("output") ? [] : ["output", "o"]), "help", "h"];
      assert.equal(new Set(names).size, names.length);
    }
  });
});

describe("readArguments", () => {
  const flags: readonly Flag[] = [
    { name: "file", short: "f", value: "FILE", many: true, about: "" },
    { name: "why", about: "" },
  ];

  it("takes flags before, between and after operands, repeated ones in order", () => {
    const args = readArguments(["-f", "a", "one", "--file=b", "--why", "two", "-fc"], flags);
    assert.deepEqual(args.operands, ["one", "two"]);
    assert.deepEqual(args.list("file"), ["a", "b", "c"]);
    assert.ok(args.has("why"));
  });

  it("takes everything after -- as operands, and - as one", () => {
    assert.deepEqual(readArguments(["-", "--", "--why"], flags).operands, ["-", "--why"]);
    assert.deepEqual(readArguments(["-f", "-"], flags).list("file"), ["-"]);
  });
});
