import { join, relative } from "node:path";
import { type Expression, type Node, type SignatureDeclaration, type SourceFile, SyntaxKind } from "typescript/unstable/ast";
import { isCallExpression, isIdentifier, isPropertyAccessExpression } from "typescript/unstable/ast/is";
import { API } from "typescript/unstable/sync";
import { sourceFiles } from "./source-files.ts";

/** Something larger than the house allows: a file by its lines, a function by its lines or its parameters. */
export interface SizeFault {
  /** Path from the root, and the line where it begins. */
  readonly place: string;
  readonly name: string;
  readonly what: keyof typeof SIZE_LIMITS;
  readonly count: number;
}

/** What is allowed at most. A function is counted from its first line to its last, comments within it too; one within another counts for both. */
export const SIZE_LIMITS = { "lines of a file": 400, "lines of a function": 60, parameters: 3 } as const;

/** What gives a test its place or its order: the functions handed to these hold tests, they are not functions of the program. */
const TEST_CALLS = new Set(["describe", "it", "test", "beforeAll", "beforeEach", "afterAll", "afterEach"]);

const FUNCTIONS = new Set<SyntaxKind>([
  SyntaxKind.FunctionDeclaration,
  SyntaxKind.FunctionExpression,
  SyntaxKind.ArrowFunction,
  SyntaxKind.MethodDeclaration,
  SyntaxKind.Constructor,
  SyntaxKind.GetAccessor,
  SyntaxKind.SetAccessor,
]);

/** Signatures without a body: who calls through a type has as many arguments to get right. */
const SIGNATURES = new Set<SyntaxKind>([SyntaxKind.MethodSignature, SyntaxKind.FunctionType, SyntaxKind.CallSignature]);

/** Measures every source file below the folders named: small pieces are what a reader can hold in mind, so a build step counts them. */
export function checkSizes(root: string, folders: readonly string[]): readonly SizeFault[] {
  const files = folders.flatMap((folder) => sourceFiles(join(root, folder)));
  return parsed(root, files).flatMap((source) => {
    const file = relative(root, source.fileName);
    const lines = source.text.split("\n").length - 1;
    return [...overLimit({ place: file, name: file, what: "lines of a file", count: lines }), ...functionFaults(source, file)];
  });
}

/** The syntax trees of these files and of nothing they import: a project of its own, which exists for the compiler alone, names just them. */
function parsed(root: string, files: readonly string[]): readonly SourceFile[] {
  const config = join(root, "tsconfig.sizes.json");
  const text = JSON.stringify({ compilerOptions: { allowJs: true, noLib: true, noResolve: true, types: [] }, files });
  const api = new API({ cwd: root, fs: { readFile: (path) => (path === config ? text : undefined) } });
  try {
    const project = api.updateSnapshot({ openProjects: [config] }).getProject(config);
    return files.map((file) => {
      const source = project?.program.getSourceFile(file);
      if (source === undefined) throw new Error(`the compiler has not read ${file}`);
      return source;
    });
  } finally {
    api.close();
  }
}

function functionFaults(source: SourceFile, file: string): readonly SizeFault[] {
  const faults: SizeFault[] = [];
  const visit = (node: Node): void => {
    if (isMeasured(node)) {
      const first = lineAt(source, node.getStart(source));
      const at = { place: `${file}:${first}`, name: nameOf(node, source) };
      if (FUNCTIONS.has(node.kind)) {
        faults.push(...overLimit({ ...at, what: "lines of a function", count: lineAt(source, node.end) - first + 1 }));
      }
      faults.push(...overLimit({ ...at, what: "parameters", count: node.parameters.length }));
    }
    node.forEachChild(visit);
  };
  source.forEachChild(visit);
  return faults;
}

const overLimit = (found: SizeFault): readonly SizeFault[] => (found.count > SIZE_LIMITS[found.what] ? [found] : []);

function isMeasured(node: Node): node is SignatureDeclaration {
  return SIGNATURES.has(node.kind) || (FUNCTIONS.has(node.kind) && !isTestCallback(node));
}

/** Whether this is handed to `it` or one of its kind: `it("…", f)`, `describe.skipIf(x)("…", f)`, `it.each(rows)("…", f)`. */
function isTestCallback(node: Node): boolean {
  const call = node.parent;
  if (!isCallExpression(call)) return false;
  let callee: Expression = call.expression;
  while (isCallExpression(callee) || isPropertyAccessExpression(callee)) callee = callee.expression;
  return isIdentifier(callee) && TEST_CALLS.has(callee.text);
}

/** Its own name, or that of the variable, field or type that it is the value of. */
function nameOf(node: Node, source: SourceFile): string {
  const named = [node, node.parent].map((owner) => (owner as Node & { readonly name?: Node }).name).find((name) => name !== undefined);
  return named?.getText(source) ?? "(without a name)";
}

const lineAt = (source: SourceFile, position: number): number => source.getLineAndCharacterOfPosition(position).line + 1;
