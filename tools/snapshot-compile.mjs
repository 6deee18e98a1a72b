// Part of a snapshot: what is compiled before the snapshot is taken, a start need not compile.

/**
 * Compiles functions that nobody has called yet. `list` names a file: positions at which functions begin, by script (`rehearse` in tools/rehearsal.mjs). V8
 * keeps them with the snapshot where Node is told to keep compiled code. Without a file it does nothing.
 *
 * The one way to have a function compiled without calling it is to ask a debugger where one could stop in it. Node's own modules are hidden from
 * debuggers, so this is for scripts of ours.
 */
export function compileAhead(list) {
  if (list === undefined) return;
  const functions = JSON.parse(process.getBuiltinModule("node:fs").readFileSync(list, "utf8"));
  const { Session } = process.getBuiltinModule("node:inspector");
  const session = new Session();
  session.connect();
  const ask = (method, parameters) => {
    let answer;
    session.post(method, parameters, (error, result) => {
      if (error !== null) throw new Error(`${method}: ${error.message}`);
      answer = result;
    });
    return answer;
  };
  const scripts = new Map();
  session.on("Debugger.scriptParsed", ({ params }) => scripts.set(params.url.replace(/^file:\/\//, ""), params.scriptId));
  ask("Debugger.enable");
  for (const [name, starts] of Object.entries(functions)) {
    const scriptId = scripts.get(name);
    if (scriptId === undefined) continue;
    const { scriptSource } = ask("Debugger.getScriptSource", { scriptId });
    for (const { lineNumber, columnNumber } of placesOf(starts, scriptSource)) {
      const start = { scriptId, lineNumber, columnNumber };
      ask("Debugger.getPossibleBreakpoints", { start, end: { ...start, columnNumber: columnNumber + 1 } });
    }
  }
  ask("Debugger.disable");
  session.disconnect();
}

/** Line and column of positions in a text, which are in order. */
function* placesOf(positions, text) {
  let [lineNumber, lineStart] = [0, 0];
  for (const position of positions) {
    for (let end = text.indexOf("\n", lineStart); end >= 0 && end < position; end = text.indexOf("\n", lineStart)) {
      lineNumber += 1;
      lineStart = end + 1;
    }
    yield { lineNumber, columnNumber: position - lineStart };
  }
}
