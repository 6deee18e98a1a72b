import { existsSync, globSync, readFileSync } from "node:fs";
import { basename, dirname, join, resolve } from "node:path";
import { describe, expect, it } from "vitest";

const ROOT = resolve(import.meta.dirname, "../..");
const PAGES = globSync(["*.md", "docs/*.md", "{src,test,bench,deploy,tools,proto}/**/*.md"], { cwd: ROOT }).sort();
const textOf = (page: string): string => readFileSync(join(ROOT, page), "utf8");

/** Anchors of a page's headings, as they are made where it is read: small letters, hyphens for spaces, nothing else but letters and digits. */
const anchorsOf = (page: string): ReadonlySet<string> =>
  new Set(
    [...textOf(page).matchAll(/^#+ (.+)$/gm)].map(([, title = ""]) =>
      title
        .toLowerCase()
        .replaceAll(/[^\p{L}\p{N} _-]/gu, "")
        .replaceAll(" ", "-"),
    ),
  );

/** Links into the repository that lead nowhere. */
function brokenLinks(page: string): readonly string[] {
  const links = [...textOf(page).matchAll(/\]\((?!https?:)([^)#\s]*)(?:#([^)\s]+))?\)/g)];
  return links.flatMap(([link, path = "", anchor]) => {
    const target = path === "" ? page : join(dirname(page), path);
    if (!existsSync(join(ROOT, target))) return [link];
    return anchor === undefined || anchorsOf(target).has(anchor) ? [] : [link];
  });
}

/** Sources by their names alone. */
const FILES = globSync("{src,test,tools,bench}/**/*.{ts,mjs}", { cwd: ROOT }).filter((file) => !file.startsWith("src/gen/"));
const NAMES = new Set(FILES.map((file) => basename(file)));

/** Files and folders in code style that are not there: from the root, as pages about `src/` name what is below it, or by their names alone. */
function absentPaths(page: string): readonly string[] {
  const named = [...textOf(page).matchAll(/`([a-z][\w.-]*(?:\/[\w.-]+)*\/?)`/g)].map(([, path = ""]) => path);
  const ours = named.filter((path) => /^(src|test|tools|bench|docs|deploy|proto)\//.test(path) || /\.(ts|mjs)$/.test(path));
  const places = [ROOT, join(ROOT, "src"), join(ROOT, dirname(page))];
  return ours.filter((path) => !NAMES.has(path) && !places.some((place) => existsSync(join(place, path))));
}

const SOURCES = FILES.map((file) => readFileSync(join(ROOT, file), "utf8")).join("\n");
/** The others name values of the API, or settings of Istio that are not ours. docs/settings.md is made from the table of settings. */
const PAGES_OF_OPERATORS = [
  "README.md",
  ...["agent", "identity", "kubernetes", "injection", "metrics", "observing"].map((name) => `docs/${name}.md`),
];

/** Variables in code style that nothing reads. What begins with ISTIO_META_ is read without that. */
function unknownVariables(page: string): readonly string[] {
  const named = [...textOf(page).matchAll(/`(?:ISTIO_META_)?([A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+)(?:[=:][^`]*)?`/g)].map(([, name = ""]) => name);
  return [...new Set(named)].filter((name) => !SOURCES.includes(name));
}

describe.each(PAGES)("%s", (page) => {
  it("links to what is there", () => expect(brokenLinks(page)).toEqual([]));
  it("names files that are there", () => expect(absentPaths(page)).toEqual([]));
});

describe.each(PAGES_OF_OPERATORS)("%s", (page) => {
  it("names variables that something reads", () => expect(unknownVariables(page)).toEqual([]));
});
