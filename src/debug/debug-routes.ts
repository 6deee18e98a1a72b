import type { DebugPage } from "./api-types.ts";
import { configPages } from "./config-pages.ts";
import { type DebugDeps, depsWithin } from "./debug-deps.ts";
import type { HttpRoute } from "./http-route.ts";
import { insidePages } from "./inside-pages.ts";
import { ok, type Page } from "./page.ts";
import { policyPages } from "./policy-pages.ts";
import { proxyPages } from "./proxy-pages.ts";
import { registryPages } from "./registry-pages.ts";

/** The debug pages over live state. None of them is open. Names and shapes are Istio's where Istio has the page. */
export function debugRoutes(deps: DebugDeps): readonly HttpRoute[] {
  return pagesOf(deps).map(({ divisible, ...page }) => ({
    ...page,
    open: false,
    ...(divisible === true && { within: withinPage(deps, page) }),
  }));
}

const pagesOf = (deps: DebugDeps): readonly Page[] => [
  ...proxyPages(deps),
  ...configPages(deps),
  ...policyPages(deps),
  ...registryPages(deps),
  ...insidePages(deps),
];

const withinPage =
  (deps: DebugDeps, { path, answer }: Page) =>
  (namespace: string): Page["answer"] =>
    pagesOf(depsWithin(deps, namespace)).find((page) => page.path === path)?.answer ?? answer;

const DEBUG = "/debug/";

/** The pages that name all others, whoever serves them: with what each is about, and as Istio's tools read it, those that only show something by their names. */
export function indexRoutes(routes: readonly HttpRoute[]): readonly HttpRoute[] {
  const sorted = routes.toSorted((a, b) => (a.path < b.path ? -1 : 1));
  const index = sorted.map(({ path, about, method }): DebugPage => ({ path, about, ...(method !== undefined && { method }) }));
  const names = sorted.flatMap(({ path, method, acts }) =>
    path.startsWith(DEBUG) && method === undefined && acts !== true ? [path.slice(DEBUG.length)] : [],
  );
  return [
    { path: "/debug", open: false, about: "all pages and what they show", answer: () => ok(index) },
    { path: "/debug/list", open: false, about: "the names of all debug pages", answer: () => ok(names) },
  ];
}
