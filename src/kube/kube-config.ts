import { readFile } from "node:fs/promises";
import { dirname, isAbsolute, join } from "node:path";
import { load } from "js-yaml";
import { EdgeError, messageOf } from "../base/errors.ts";

/** JSON-shaped part of a kubeconfig. */
type Part = Readonly<Record<string, unknown>>;

/** One entry of `clusters`, `users` or `contexts`, and the directory that its relative paths are under. */
export interface Named {
  readonly name: string;
  readonly content: Part;
  readonly dir: string;
}

/** Kubeconfig files joined as kubectl does: of entries with one name the first counts. */
export interface KubeConfig {
  readonly files: readonly string[];
  readonly currentContext: string;
  readonly clusters: readonly Named[];
  readonly users: readonly Named[];
  readonly contexts: readonly Named[];
}

/** What a context chooses. */
export interface ChosenContext {
  readonly context: string;
  readonly namespace: string | undefined;
  readonly cluster: Named;
  readonly user: Named | undefined;
}

/** A kubeconfig is small; what is larger is something else. */
const MOST_BYTES = 4 * 1024 * 1024;

/** Reads and joins kubeconfig files. Those that are absent are left out, as kubectl does; undefined where none is there. */
export async function readKubeConfig(paths: readonly string[]): Promise<KubeConfig | undefined> {
  const parts: KubeConfig[] = [];
  for (const path of paths) {
    const text = await textOf(path);
    if (text !== undefined) parts.push(parseKubeConfig(text, path));
  }
  return parts.length === 0 ? undefined : parts.reduce(joined);
}

/** Reads the text of a kubeconfig; `path` names it in messages, and relative paths in it are beside it. */
export function parseKubeConfig(text: string, path: string): KubeConfig {
  let content: unknown;
  try {
    content = load(text) ?? {};
  } catch (error) {
    throw unusable(`the kubeconfig ${path} cannot be read: ${messageOf(error).split("\n")[0]}`);
  }
  if (!isPart(content)) throw unusable(`the kubeconfig ${path} must be a map of fields`);
  const named = (list: string, inner: string): readonly Named[] => namedParts(content, { list, inner, dir: dirname(path) });
  return {
    files: [path],
    currentContext: textField(content, "current-context") ?? "",
    clusters: named("clusters", "cluster"),
    users: named("users", "user"),
    contexts: named("contexts", "context"),
  };
}

/** Follows a context to its cluster and user. Without a name the current context is meant; where there is none, the only one. */
export function chooseContext(config: KubeConfig, wanted: string): ChosenContext {
  const where = config.files.join(", ");
  const only = config.contexts.length === 1 ? config.contexts[0]?.name : undefined;
  const name = wanted || config.currentContext || only;
  if (name === undefined || name === "") throw unusable(`${where} names no current context`, "set KUBE_CONTEXT");
  const context = config.contexts.find((one) => one.name === name);
  if (context === undefined) throw unusable(`${where} has no context ${JSON.stringify(name)}`, `there are: ${namesOf(config.contexts)}`);
  const clusterName = textField(context.content, "cluster") ?? "";
  const cluster = config.clusters.find((one) => one.name === clusterName);
  if (cluster === undefined)
    throw unusable(`context ${JSON.stringify(name)} of ${where} names cluster ${JSON.stringify(clusterName)}, which is not there`);
  const userName = textField(context.content, "user") ?? "";
  const user = config.users.find((one) => one.name === userName);
  if (user === undefined && userName !== "")
    throw unusable(`context ${JSON.stringify(name)} of ${where} names user ${JSON.stringify(userName)}, which is not there`);
  return { context: name, namespace: textField(context.content, "namespace"), cluster, user };
}

/** Reads a text field; undefined where it is absent or empty. */
export function textField(part: Part, name: string): string | undefined {
  const value = part[name];
  return typeof value === "string" && value !== "" ? value : undefined;
}

/** A path in a kubeconfig is relative to the file it stands in. */
export const pathIn = (dir: string, path: string): string => (isAbsolute(path) ? path : join(dir, path));

/** Why a cluster cannot be used, in a sentence. */
export const unusable = (message: string, hint?: string): EdgeError =>
  new EdgeError("kubernetes_unusable", message, hint === undefined ? {} : { hint });

async function textOf(path: string): Promise<string | undefined> {
  try {
    const text = await readFile(path, "utf8");
    if (text.length > MOST_BYTES) throw unusable(`the kubeconfig ${path} is too large`);
    return text;
  } catch (error) {
    if (error instanceof EdgeError) throw error;
    const code = error instanceof Error && "code" in error ? error.code : undefined;
    if (code === "ENOENT" || code === "ENOTDIR") return undefined;
    throw unusable(`the kubeconfig ${path} cannot be read: ${messageOf(error)}`);
  }
}

function namedParts(content: Part, { list, inner, dir }: { readonly list: string; readonly inner: string; readonly dir: string }): Named[] {
  const entries = content[list];
  if (!Array.isArray(entries)) return [];
  return entries.flatMap((entry: unknown) => {
    if (!isPart(entry) || typeof entry.name !== "string") return [];
    const part = entry[inner];
    return [{ name: entry.name, content: isPart(part) ? part : {}, dir }];
  });
}

function joined(first: KubeConfig, second: KubeConfig): KubeConfig {
  const byName = (a: readonly Named[], b: readonly Named[]): readonly Named[] => [
    ...a,
    ...b.filter((one) => !a.some(({ name }) => name === one.name)),
  ];
  return {
    files: [...first.files, ...second.files],
    currentContext: first.currentContext || second.currentContext,
    clusters: byName(first.clusters, second.clusters),
    users: byName(first.users, second.users),
    contexts: byName(first.contexts, second.contexts),
  };
}

/** Whether a value of a kubeconfig has fields. */
export const isPart = (value: unknown): value is Part => typeof value === "object" && value !== null && !Array.isArray(value);
const namesOf = (entries: readonly Named[]): string => entries.map(({ name }) => name).join(", ") || "none";
