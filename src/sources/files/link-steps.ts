import { lstat, readlink } from "node:fs/promises";
import { basename, dirname, isAbsolute, join, parse, sep } from "node:path";

/** A name in a directory; when it changes, the path that led through it may lead elsewhere. */
export interface LinkStep {
  readonly dir: string;
  readonly name: string;
}

/** What links lead to, for paths that share their beginning. To be thrown away before anything may have changed. */
export type LinkMemo = Map<string, Promise<string | undefined>>;

/** As the kernel: more links than this is a loop. */
const MAX_LINKS = 40;

/**
 * Every link on the way to `path`, and the place where it ends. A mounted ConfigMap swaps `..data`, a deployment swaps `current`:
 * the swap is seen only by whoever watches the directory the link stands in. Names that do not exist end the walk.
 */
export async function linkSteps(path: string, memo: LinkMemo = new Map()): Promise<readonly LinkStep[]> {
  const steps: LinkStep[] = [];
  let at = parse(path).root;
  let rest = partsOf(path);
  for (let links = 0; rest.length > 0; ) {
    const [name, ...tail] = rest;
    if (name === undefined) break;
    if (name === "..") {
      at = dirname(at);
      rest = tail;
      continue;
    }
    const here = join(at, name);
    const target = await rememberedTarget(here, memo);
    if (target === undefined) {
      at = here;
      rest = tail;
      continue;
    }
    steps.push({ dir: at, name });
    links += 1;
    if (links > MAX_LINKS) return steps;
    if (isAbsolute(target)) at = parse(target).root;
    rest = [...partsOf(target), ...tail];
  }
  steps.push({ dir: dirname(at), name: basename(at) });
  return steps;
}

function rememberedTarget(path: string, memo: LinkMemo): Promise<string | undefined> {
  const target = memo.get(path) ?? linkTarget(path);
  memo.set(path, target);
  return target;
}

async function linkTarget(path: string): Promise<string | undefined> {
  try {
    return (await lstat(path)).isSymbolicLink() ? await readlink(path) : undefined;
  } catch {
    return undefined;
  }
}

const partsOf = (path: string): string[] => path.split(sep).filter((part) => part !== "" && part !== "." && part !== parse(path).root);
