/** What stands in a template, read. */
export type Node =
  | { readonly type: "text"; readonly text: string }
  | { readonly type: "print"; readonly pipe: Pipe; readonly line: number }
  | Branch
  | { readonly type: "template"; readonly template: string; readonly pipe: Pipe | undefined; readonly line: number }
  | { readonly type: "break" | "continue" };

export interface Branch {
  readonly type: "if" | "with" | "range";
  readonly pipe: Pipe;
  readonly then: readonly Node[];
  readonly otherwise: readonly Node[];
  readonly line: number;
}

/** Commands one behind the other, each given the value of the one before; the last value may go to variables. */
export interface Pipe {
  readonly variables: readonly string[];
  /** `=`: the variables exist already. */
  readonly assigns: boolean;
  readonly commands: readonly Command[];
}

export type Command = readonly Operand[];

export type Operand =
  | { readonly type: "dot"; readonly fields: readonly string[] }
  | { readonly type: "variable"; readonly variable: string; readonly fields: readonly string[] }
  | { readonly type: "pipe"; readonly pipe: Pipe; readonly fields: readonly string[] }
  | { readonly type: "function"; readonly called: string }
  | { readonly type: "literal"; readonly value: unknown };

/** A whole template: its own content, and what it defines. */
export interface TemplateTree {
  readonly main: readonly Node[];
  readonly defined: ReadonlyMap<string, readonly Node[]>;
}
