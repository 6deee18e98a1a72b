import { messageOf } from "../../base/errors.ts";
import { isFields } from "../pod.ts";
import { fieldOf, isTrue, printed } from "./go-values.ts";
import { TEMPLATE_FUNCTIONS } from "./template-functions.ts";
import type { Branch, Command, Node, Operand, Pipe, TemplateTree } from "./template-nodes.ts";

const MOST_STEPS = 200_000;
const LONGEST_OUTPUT = 1024 * 1024;
const DEEPEST_CALL = 40;

/** Variables in force, the innermost last. */
type Scope = Map<string, unknown>[];

interface Frame {
  readonly dot: unknown;
  readonly scope: Scope;
}

/** Runs a template on data. Bounded in steps, output and depth, so that no template can hold the process; throws with the line of what fails. */
export function evaluateTemplate(tree: TemplateTree, data: unknown): string {
  return new Evaluation(tree).run(data);
}

class Evaluation {
  readonly #tree: TemplateTree;
  readonly #output: string[] = [];
  #data: unknown;
  #length = 0;
  #steps = 0;
  #calls = 0;
  #leaving: "break" | "continue" | undefined;

  constructor(tree: TemplateTree) {
    this.#tree = tree;
  }

  run(data: unknown): string {
    this.#data = data;
    this.#nodes(this.#tree.main, { dot: data, scope: [new Map([["", data]])] });
    return this.#output.join("");
  }

  #nodes(nodes: readonly Node[], frame: Frame): void {
    const inner: Frame = { dot: frame.dot, scope: [...frame.scope, new Map()] };
    for (const node of nodes) {
      this.#step();
      this.#node(node, inner);
      if (this.#leaving !== undefined) return;
    }
  }

  #node(node: Node, frame: Frame): void {
    switch (node.type) {
      case "text":
        this.#write(node.text);
        return;
      case "break":
      case "continue":
        this.#leaving = node.type;
        return;
      default:
        this.#atLine(node.line, () => this.#active(node, frame));
    }
  }

  #active(node: Extract<Node, { line: number }>, frame: Frame): void {
    if (node.type === "print") {
      const value = this.#pipe(node.pipe, frame);
      if (node.pipe.variables.length === 0) this.#write(printed(value));
    } else if (node.type === "template") this.#call(node.template, node.pipe === undefined ? null : this.#pipe(node.pipe, frame));
    else if (node.type === "range") this.#range(node, frame);
    else this.#choose(node, frame);
  }

  #choose(node: Branch, frame: Frame): void {
    const inner: Frame = { dot: frame.dot, scope: [...frame.scope, new Map()] };
    const value = this.#pipe(node.pipe, inner);
    if (!isTrue(value)) this.#nodes(node.otherwise, inner);
    else this.#nodes(node.then, node.type === "with" ? { ...inner, dot: value } : inner);
  }

  #range(node: Branch, frame: Frame): void {
    const entries = entriesOf(this.#value(node.pipe, frame));
    if (entries.length === 0) this.#nodes(node.otherwise, frame);
    const names = node.pipe.variables;
    for (const [key, item] of entries) {
      const scope = [...frame.scope, new Map<string, unknown>()];
      const [first, second] = names;
      if (second !== undefined) declare(scope, [first ?? "", second], [key, item]);
      else if (first !== undefined) declare(scope, [first], [item]);
      this.#nodes(node.then, { dot: item, scope });
      const leaving = this.#leaving;
      this.#leaving = undefined;
      if (leaving === "break") return;
    }
  }

  #call(name: string, data: unknown): void {
    const nodes = this.#tree.defined.get(name);
    if (nodes === undefined) throw new Error(`template ${JSON.stringify(name)} is not defined`);
    this.#calls += 1;
    if (this.#calls > DEEPEST_CALL) throw new Error(`templates call each other more than ${DEEPEST_CALL} levels deep`);
    this.#nodes(nodes, { dot: data, scope: [new Map([["", data]])] });
    this.#calls -= 1;
  }

  #pipe(pipe: Pipe, frame: Frame): unknown {
    const value = this.#value(pipe, frame);
    const [name] = pipe.variables;
    if (name === undefined) return value;
    if (pipe.assigns) assign(frame.scope, name, value);
    else declare(frame.scope, [name], [value]);
    return value;
  }

  #value({ commands }: Pipe, frame: Frame): unknown {
    let value: unknown;
    let isPiped = false;
    for (const command of commands) {
      value = this.#command(command, isPiped ? [value] : [], frame);
      isPiped = true;
    }
    return value;
  }

  #command([first, ...rest]: Command, piped: readonly unknown[], frame: Frame): unknown {
    this.#step();
    if (first === undefined) return undefined;
    if (first.type === "function") return this.#function(first.called, { rest, piped, frame });
    if (rest.length + piped.length > 0) throw new Error("only a function takes arguments");
    return this.#operand(first, frame);
  }

  #function(name: string, call: { readonly rest: readonly Operand[]; readonly piped: readonly unknown[]; readonly frame: Frame }): unknown {
    const { rest, piped, frame } = call;
    if (name === "and" || name === "or") {
      let value: unknown;
      for (const operand of [...rest.map((one) => () => this.#operand(one, frame)), ...piped.map((one) => () => one)]) {
        value = operand();
        if (isTrue(value) === (name === "or")) return value;
      }
      return value;
    }
    const work = Object.hasOwn(TEMPLATE_FUNCTIONS, name) ? TEMPLATE_FUNCTIONS[name] : undefined;
    if (work === undefined) throw new Error(`there is no function ${name}`);
    const value = work(...rest.map((operand) => this.#operand(operand, frame)), ...piped);
    if (typeof value === "string" && value.length > LONGEST_OUTPUT) throw new Error(`${name} gives more than ${LONGEST_OUTPUT} characters`);
    return value;
  }

  #operand(operand: Operand, frame: Frame): unknown {
    this.#step();
    switch (operand.type) {
      case "literal":
        return operand.value;
      case "function":
        return this.#function(operand.called, { rest: [], piped: [], frame });
      case "dot":
        return this.#fields(frame.dot, operand.fields);
      case "variable":
        return this.#fields(variable(frame.scope, operand.variable), operand.fields);
      case "pipe":
        return this.#fields(this.#value(operand.pipe, frame), operand.fields);
    }
  }

  /** What is absent below is empty, but of the data itself all fields are known: another one is a slip of the template's author. */
  #fields(value: unknown, fields: readonly string[]): unknown {
    const [first] = fields;
    if (first !== undefined && value === this.#data && isFields(value) && !Object.hasOwn(value, first))
      throw new Error(`there is no .${first}; there are ${Object.keys(value).join(", ")}`);
    return fields.reduce(fieldOf, value);
  }

  #write(text: string): void {
    this.#length += text.length;
    if (this.#length > LONGEST_OUTPUT) throw new Error(`gives more than ${LONGEST_OUTPUT} characters`);
    this.#output.push(text);
  }

  #step(): void {
    this.#steps += 1;
    if (this.#steps > MOST_STEPS) throw new Error(`takes more than ${MOST_STEPS} steps`);
  }

  #atLine(line: number, work: () => void): void {
    try {
      work();
    } catch (error) {
      const message = messageOf(error);
      throw new Error(message.startsWith("line ") ? message : `line ${line}: ${message}`);
    }
  }
}

function entriesOf(value: unknown): readonly (readonly [unknown, unknown])[] {
  if (Array.isArray(value)) return value.map((item, index) => [index, item]);
  if (isFields(value))
    return Object.keys(value)
      .sort()
      .map((key) => [key, value[key]]);
  if (typeof value === "number") return Array.from({ length: Math.min(Math.max(value, 0), MOST_STEPS) }, (_, index) => [index, index]);
  return [];
}

function declare(scope: Scope, names: readonly string[], values: readonly unknown[]): void {
  for (const [index, name] of names.entries()) scope.at(-1)?.set(name, values[index]);
}

function assign(scope: Scope, name: string, value: unknown): void {
  const holder = scope.findLast((variables) => variables.has(name));
  if (holder === undefined) throw new Error(`variable $${name} is not declared`);
  holder.set(name, value);
}

function variable(scope: Scope, name: string): unknown {
  const holder = scope.findLast((variables) => variables.has(name));
  if (holder === undefined) throw new Error(`variable $${name} is not declared`);
  return holder.get(name);
}
