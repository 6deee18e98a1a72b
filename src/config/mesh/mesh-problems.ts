import type { Report } from "../kind-def.ts";
import { type FieldPath, formatPath, levelOf, type Problem } from "../problem.ts";
import type { ProblemCode } from "../problem-codes.ts";
import type { MeshFile, MeshFiles } from "./mesh-files.ts";
import { hasPath, lineOf } from "./read-yaml.ts";

/** Collects what is wrong with the files of a mesh and finds the file and line of each fault. */
export class MeshProblems {
  readonly #found: Problem[] = [];
  readonly #files: MeshFiles;

  constructor(files: MeshFiles) {
    this.#files = files;
    for (const fault of files.faults) {
      const file = this.#known(fault.file);
      const line = fault.line ?? (file === undefined ? undefined : lineOf(file.text, fault.path));
      this.#add(fault, { path: fault.file, line });
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
    return (code, path, message) => this.#add({ code, path, message }, { path: file.path, line: lineOf(file.text, path) });
  }

  /** Reports on all files together: the last one that writes the field is the one to blame, else the first. */
  readonly report: Report = (code, path, message) => {
    const [place, within] = this.#writerOf(path);
    if (place === undefined) this.#add({ code, path, message }, undefined);
    else this.#add({ code, path: within, message }, { path: place.path, line: lineOf(place.text, within) });
  };

  #writerOf(path: FieldPath): readonly [MeshFile | undefined, FieldPath] {
    const { layers, networks } = this.#files;
    const inNetworks = path.slice(1);
    if (path.length === 0) return [undefined, path];
    if (networks !== undefined && path[0] === "meshNetworks" && hasPath(networks.content, inNetworks.slice(0, 2))) return [networks, inNetworks];
    for (let length = path.length; length > 0; length--) {
      const writer = layers.findLast((layer) => hasPath(layer.content, path.slice(0, length)));
      if (writer !== undefined) return [writer, path];
    }
    return [layers[0], path];
  }

  #known(path: string): MeshFile | undefined {
    return [...this.#files.layers, this.#files.networks].find((file) => file?.path === path);
  }

  #add(fault: { code: ProblemCode; path: FieldPath; message: string }, place: { path: string; line: number | undefined } | undefined): void {
    const problem: Problem = {
      code: fault.code,
      level: levelOf(fault.code),
      object: { kind: "MeshConfig", namespace: "", name: "mesh" },
      path: fault.path,
      message: fault.message,
      ...(place !== undefined && { file: place.path }),
      ...(place?.line !== undefined && { line: place.line }),
    };
    const same = (other: Problem): boolean =>
      other.code === problem.code && other.file === problem.file && other.message === problem.message && formatPath(other.path) === formatPath(problem.path);
    if (!this.#found.some(same)) this.#found.push(problem);
  }
}

/** `etc/istio/mesh.yaml:3: trustDomain: …`, the sentence shown at start-up, in the log and by `istioctl validate`. */
export function meshProblemText(problem: Problem): string {
  const place = problem.file === undefined ? "" : `${problem.file}${problem.line === undefined ? "" : `:${problem.line}`}: `;
  const field = formatPath(problem.path);
  return `${place}${field === "" ? "" : `${field}: `}${problem.message}`;
}
