import { lstat, readlink } from "node:fs/promises";
import { basename, dirname, isAbsolute, join, parse, sep } from "node:path";
import { isMissing } from "./system-error.ts";

/** A name in a directory; when it changes, the path that led through it may lead elsewhere. */
export interface LinkStep {
  readonly dir: string;
  readonly name: string;
}

/** What is at a path: where a link leads to, nothing, or something else. */
type Place = { readonly type: "link"; readonly target: string } | { readonly type: "missing" } | { readonly type: "other" };

/** What is where, for paths that share their beginning. To be thrown away before anything may have changed. */
export type LinkMemo = Map<string, Promise<Place>>;

/** As the kernel: more links than this is a loop. */
const MAX_LINKS = 40;

/**
 * Every link on the way to `path`, and the place where it ends. A mounted ConfigMap swaps `..data`, a deployment swaps `current`:
 * the swap is seen only by whoever watches the directory the link stands in. A name that does not exist is the last step: when it does, the path leads on.
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
    const place = await rememberedPlace(here, memo);
    if (place.type === "other") {
      at = here;
      rest = tail;
      continue;
    }
    steps.push({ dir: at, name });
    if (place.type === "missing") return steps;
    const { target } = place;
    links += 1;
    if (links > MAX_LINKS) return steps;
    if (isAbsolute(target)) at = parse(target).root;
    rest = [...partsOf(target), ...tail];
  }
  steps.push({ dir: dirname(at), name: basename(at) });
  return steps;
}

function rememberedPlace(path: string, memo: LinkMemo): Promise<Place> {
  const place = memo.get(path) ?? placeAt(path);
  memo.set(path, place);
  return place;
}

async function placeAt(path: string): Promise<Place> {
  try {
    return (await lstat(path)).isSymbolicLink() ? { type: "link", target: await readlink(path) } : { type: "other" };
  } catch (error) {
    return { type: isMissing(error) ? "missing" : "other" };
  }
}

const partsOf = (path: string): string[] => path.split(sep).filter((part) => part !== "" && part !== "." && part !== parse(path).root);
