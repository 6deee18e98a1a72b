import assert from "node:assert/strict";
import fc from "fast-check";
import { describe, it } from "vitest";
import { holds } from "../../../../test/support/holds.ts";
import { luaFault } from "./syntax.ts";

const GOOD = `
local seen, limit = {}, 0x10 -- of this worker
function envoy_on_request(handle)
  local name = handle:headers():get("x-name") or 'nobody\\n'
  for index, value in ipairs({ 1, 2; three = 3, [4] = "four" }) do
    if value == 2 then goto continue elseif not value then break end
    seen[#seen + 1] = name .. [[ and ]] .. -index ^ 2
    ::continue::
  end
  repeat local done = #seen < limit until done
  return function(...) return select("#", ...) end
end
`;

describe("luaFault", () => {
  it("has nothing against a script", () => assert.equal(luaFault(GOOD), undefined));

  const table: readonly (readonly [source: string, line: number, reason: string])[] = [
    ["function envoy_on_request(", 1, "a name expected, found end of the script"],
    ["if a then\n  f()\n", 3, '"end" for "if" of line 1 expected, found end of the script'],
    ["f(\n1,\n2\nx = 1", 4, '")" for "(" of line 1 expected, found "x"'],
    ["x = 1 +", 1, "unexpected end of the script"],
    ["x = a // b", 1, 'unexpected "/"'],
    ["end", 1, 'unexpected "end"'],
    ["x = 'a\n'", 1, "a text has no end: ' is missing in its line"],
    ["x = [[a\n", 1, "a text in long brackets has no end"],
    ["--[[ a\n", 1, "a comment has no end"],
    ["x = '\\d'", 1, 'unknown escape "\\\\d" in a text'],
    ["x = 12abc", 1, '"12abc" is not a number'],
    ["x = $", 1, 'unexpected "$"'],
    ["x = a[=", 1, 'unexpected "=" behind "["'],
    ["\x1bLJ", 1, "is compiled code, not a script"],
    ["\n(a) = 1", 2, "what is assigned to must be a variable or a field"],
    ["\nbreak\n", 2, "break stands in no loop"],
    ["function f()\n  goto out\nend", 2, 'goto finds no label "out"'],
    ["::a::\n::a::", 2, 'the label "a" is there twice'],
    ["goto a\nlocal b\n::a::\nb = 1", 4, 'goto jumps over a local variable to the label "a"'],
    ["function f()\n  return ...\nend", 2, '"..." stands in a function without it'],
    [`x = ${"(".repeat(200)}`, 1, "more than 199 levels stand in each other"],
    [`return f(${"a,".repeat(248)}a)`, 1, "a function holds more than 249 values at once"],
    [`local ${"a,".repeat(200)}a`, 1, "a function has more than 200 local variables"],
  ];
  for (const [source, line, reason] of table)
    it(`says of ${JSON.stringify(source.slice(0, 30))} what is wrong and where`, () =>
      assert.deepEqual(luaFault(source), { line, reason }));

  it("counts the lines of texts and comments, however they end", () => {
    assert.equal(luaFault('a = [[\n\n]] --[[\r\n]]\rb = "\\\n\\z\n "\n\r)')?.line, 8);
  });
});

describe("any text", () => {
  const words =
    "function end if then else do while for in repeat until local return goto break :: ( ) { } [ ] [[ ]] [=[ ... .. . , ; = == ' \" \\ -- 0x 1e 1 a b \n"
      .split(" ")
      .map((word) => fc.constant(word));
  const isVerdict = (source: string): void => {
    const fault = luaFault(source);
    if (fault !== undefined) assert.ok(fault.line >= 1 && fault.reason !== "", source);
  };

  it("gets a verdict", () => {
    holds(fc.property(fc.string({ unit: "binary", maxLength: 200 }), isVerdict));
    holds(fc.property(fc.array(fc.oneof(...words), { maxLength: 60 }), (some) => isVerdict(some.join(" "))));
  });

  it("gets one when a character of a script is missing, at a line that the script has", () => {
    const lines = GOOD.split("\n").length;
    for (let at = 0; at < GOOD.length; at++) {
      const fault = luaFault(GOOD.slice(0, at) + GOOD.slice(at + 1));
      if (fault !== undefined) assert.ok(fault.line >= 1 && fault.line <= lines);
    }
  });

  const LENGTH = 300_000;
  /** Far more than a linear reading takes on a slow machine, and far less than a quadratic one on a fast one. */
  const MOST_MS = 5_000;
  const long = [
    "(",
    "a=1 ",
    "f(",
    "{",
    "[=",
    "--[=",
    "[==[",
    "'\\z ",
    "x=",
    "a.",
    "- ",
    "::a:: ",
    "goto a ",
    "9",
    "0x1.",
    "a,",
    "do ",
    "function f() ",
    "local a ",
    "\n\r",
  ];
  for (const part of long)
    it(`takes time by its length: ${JSON.stringify(part)}`, () => {
      const source = part.repeat(LENGTH / part.length);
      const start = performance.now();
      luaFault(source);
      luaFault(`x=${source}`);
      assert.ok(performance.now() - start < MOST_MS);
    });
});
