import type { Report } from "../kind-def.ts";
import { type FieldPath, formatPath, levelOf, type Problem } from "../problem.ts";
import type { ProblemCode } from "../problem-codes.ts";
import { isMap } from "./merge-layers.ts";
import type { MeshFile, MeshFiles } from "./mesh-files.ts";
import { hasPath } from "./read-yaml.ts";

/** Nobody reads more, and finding the place of each costs time. */
const MOST_PROBLEMS = 50;

interface Fault {
  readonly code: ProblemCode;
  readonly path: FieldPath;
  readonly message: string;
}

interface Whereabouts {
  readonly file: string;
  readonly line: number | undefined;
}

/** Collects what is wrong with the files of a mesh and finds the file and line of each fault. */
export class MeshProblems {
  readonly #found: Problem[] = [];
  readonly #files: MeshFiles;
  #providers: readonly string[] = [];

  constructor(files: MeshFiles) {
    this.#files = files;
    for (const fault of files.faults) {
      const file = [...files.layers, files.networks].find((candidate) => candidate?.path === fault.file);
      this.#add(fault, () => ({ file: fault.file, line: fault.line ?? file?.lineOf(fault.path) }));
    }
  }

  /** Whether an error (not a mere warning) was found. */
  get any(): boolean {
    return this.#found.some((problem) => problem.level === "error");
  }

  errors(): readonly Problem[] {
    return this.#found.filter((problem) => problem.level === "error");
  }

  warnings(): readonly Problem[] {
    return this.#found.filter((problem) => problem.level === "warning");
  }

  /** Reports on one file. */
  reportOn(file: MeshFile): Report {
    return (code, path, message) => this.#add({ code, path, message }, () => ({ file: file.path, line: file.lineOf(path) }));
  }

  /** Reports on all files together. `providers` are the names of extension providers in the order of the paths to come. */
  reportOnAll(providers: readonly string[] = []): Report {
    this.#providers = providers;
    return (code, path, message) => {
      const { file, path: within } = this.#writerOf(path);
      this.#add({ code, path: within, message }, () => (file === undefined ? undefined : { file: file.path, line: file.lineOf(within) }));
    };
  }

  /** The last file that writes the field, or as much of the way to it as any does; and the path in that file. */
  #writerOf(path: FieldPath): { readonly file: MeshFile | undefined; readonly path: FieldPath } {
    const { layers, networks } = this.#files;
    if (path.length === 0) return { file: undefined, path };
    const inNetworks = path.slice(1);
    if (networks !== undefined && path[0] === "meshNetworks" && hasPath(networks.content, inNetworks.slice(0, 2)))
      return { file: networks, path: inNetworks };
    if (path[0] === "extensionProviders" && typeof path[1] === "number") return this.#writerOfProvider(this.#providers[path[1]], path);
    for (let length = path.length; length > 0; length--) {
      const file = layers.findLast((layer) => hasPath(layer.content, path.slice(0, length)));
      if (file !== undefined) return { file, path };
    }
    return { file: layers[0], path };
  }

  /** Providers of several files and the defaults are one list, joined by name: their numbers mean nothing to who wrote a file. */
  #writerOfProvider(name: string | undefined, path: FieldPath): { readonly file: MeshFile | undefined; readonly path: FieldPath } {
    for (const file of this.#files.layers.toReversed()) {
      const list = file.content.extensionProviders ?? file.content.extension_providers;
      const index = Array.isArray(list) ? list.findIndex((item) => isMap(item) && item.name === name) : -1;
      if (index >= 0) return { file, path: ["extensionProviders", index, ...path.slice(2)] };
    }
    return { file: this.#files.layers[0], path };
  }

  #add(fault: Fault, find: () => Whereabouts | undefined): void {
    const level = levelOf(fault.code);
    if (this.#found.filter((problem) => problem.level === level).length >= MOST_PROBLEMS) return;
    const place = find();
    const problem: Problem = {
      code: fault.code,
      level,
      object: { kind: "MeshConfig", namespace: "", name: "mesh" },
      path: fault.path,
      message: fault.message,
      ...(place !== undefined && { file: place.file }),
      ...(place?.line !== undefined && { line: place.line }),
    };
    const text = meshProblemText(problem);
    if (!this.#found.some((other) => meshProblemText(other) === text)) this.#found.push(problem);
  }
}

/** `etc/istio/mesh.yaml:3: trustDomain: …`, as shown at start-up, in the log and by `istioctl validate`. */
export function meshProblemText(problem: Problem): string {
  const place = problem.file === undefined ? "" : `${problem.file}${problem.line === undefined ? "" : `:${problem.line}`}: `;
  const field = formatPath(problem.path);
  return `${place}${field === "" ? "" : `${field}: `}${problem.message}`;
}

/** One sentence for all of them: the first, and how many more there are. */
export function meshProblemsSentence(problems: readonly Problem[]): string {
  const [first, ...more] = problems;
  if (first === undefined) return "";
  const rest = more.length === 0 ? "" : ` (and ${more.length} more ${more.length === 1 ? "problem" : "problems"})`;
  return `${meshProblemText(first)}${rest}`;
}
