// What a snapshot holds of Node's own modules. Node writes the compiled code of all of them or of none (src/node_snapshotable.cc), and where it writes none it
// also throws away what is compiled of ours. Most of them a program never loads, and a process reads and holds all of its snapshot.

const NUMBER = 8;

/**
 * A snapshot without the compiled code of modules other than these; undefined where it does not look as expected. Code of modules ends the file: their
 * number, then for each the length of its name, the name, the length of the code and the code.
 */
export function withModules(blob, modules) {
  const found = findModules(blob);
  if (found === undefined) return undefined;
  const kept = found.entries.filter(({ name }) => modules.includes(name));
  const count = Buffer.alloc(NUMBER);
  count.writeBigUInt64LE(BigInt(kept.length));
  return Buffer.concat([blob.subarray(0, found.at), count, ...kept.map(({ start, end }) => blob.subarray(start, end))]);
}

/** Where the list begins is written nowhere: it is the place from which reading it ends where the file ends. Node has some hundreds of modules. */
function findModules(blob) {
  for (let at = blob.length - 2 * NUMBER; at >= 0; at--) {
    if (blob[at + 2] !== 0 || blob[at + 3] !== 0 || blob.readUInt32LE(at + 4) !== 0 || blob.readUInt32LE(at + NUMBER + 4) !== 0) continue;
    const entries = readModules(blob, at);
    if (entries !== undefined && entries.length > 100) return { at, entries };
  }
  return undefined;
}

function readModules(blob, start) {
  let at = start;
  const number = () => {
    const value = at + NUMBER <= blob.length ? Number(blob.readBigUInt64LE(at)) : Number.POSITIVE_INFINITY;
    at += NUMBER;
    return value;
  };
  const entries = [];
  for (let left = number(); left > 0; left--) {
    const from = at;
    const length = number();
    if (at + length > blob.length) return undefined;
    const name = blob.toString("latin1", at, at + length);
    at += length;
    const size = number();
    at += size;
    if (at > blob.length || !/^[\w./-]+$/.test(name)) return undefined;
    entries.push({ name, start: from, end: at });
  }
  return at === blob.length ? entries : undefined;
}
