import { quote } from "../../../base/quote.ts";

/** What is wrong with a script, and where. */
export interface LuaFault {
  readonly line: number;
  readonly reason: string;
}

const MOST_LOCALS = 200;
const MOST_UPVALUES = 60;

interface Local {
  /** Undefined for what a loop keeps for itself. */
  readonly name: string | undefined;
  readonly owner: FunctionScope;
}

interface FunctionScope {
  readonly parent: FunctionScope | undefined;
  readonly isVararg: boolean;
  readonly locals: Local[];
  /** Locals of functions around it that it uses. */
  readonly upvalues: Set<Local>;
  block: BlockScope;
}

interface BlockScope {
  readonly parent: BlockScope | undefined;
  readonly isLoop: boolean;
  /** How many locals there were when it began. */
  readonly base: number;
  readonly labels: Set<string>;
  /** The first goto to each label that has not come yet. */
  readonly pending: Map<string, Jump>;
}

interface Jump {
  readonly line: number;
  /** How many locals there are where it stands. */
  readonly locals: number;
}

const newBlock = (parent: BlockScope | undefined, { isLoop, base }: Pick<BlockScope, "isLoop" | "base">): BlockScope => ({
  parent,
  isLoop,
  base,
  labels: new Set(),
  pending: new Map(),
});

/** The names of a script while it is read: what of them LuaJIT refuses when it compiles. Methods give what is wrong, or nothing. */
export class LuaScopes {
  #function: FunctionScope | undefined;
  /** The locals of a name, the one in force last. */
  readonly #named = new Map<string, Local[]>();

  get isVararg(): boolean {
    return this.#function?.isVararg === true;
  }

  get localCount(): number {
    return this.#function?.locals.length ?? 0;
  }

  get isInLoop(): boolean {
    for (let block = this.#function?.block; block !== undefined; block = block.parent) if (block.isLoop) return true;
    return false;
  }

  enterFunction(isVararg: boolean): void {
    const block = newBlock(undefined, { isLoop: false, base: 0 });
    this.#function = { parent: this.#function, isVararg, locals: [], upvalues: new Set(), block };
  }

  leaveFunction(): LuaFault | undefined {
    const scope = this.#function;
    if (scope === undefined) return undefined;
    this.#forget(scope, 0);
    this.#function = scope.parent;
    const [missing] = scope.block.pending;
    return missing === undefined ? undefined : { line: missing[1].line, reason: `goto finds no label ${quote(missing[0])}` };
  }

  enterBlock(isLoop: boolean): void {
    const scope = this.#function;
    if (scope !== undefined) scope.block = newBlock(scope.block, { isLoop, base: scope.locals.length });
  }

  /** What jumps out of a block jumps from where the block stands. */
  leaveBlock(): void {
    const scope = this.#function;
    const parent = scope?.block.parent;
    if (scope === undefined || parent === undefined) return;
    const { pending, base } = scope.block;
    this.#forget(scope, base);
    scope.block = parent;
    for (const [name, { line }] of pending) jump(parent, name, { line, locals: base });
  }

  declare(names: readonly (string | undefined)[]): string | undefined {
    const scope = this.#function;
    if (scope === undefined) return undefined;
    if (scope.locals.length + names.length > MOST_LOCALS) return `a function has more than ${MOST_LOCALS} local variables`;
    for (const name of names) {
      const local = { name, owner: scope };
      scope.locals.push(local);
      if (name === undefined) continue;
      const same = this.#named.get(name);
      if (same === undefined) this.#named.set(name, [local]);
      else same.push(local);
    }
    return undefined;
  }

  /** Each function between a local and its use holds it as well. */
  use(name: string): string | undefined {
    const local = this.#named.get(name)?.at(-1);
    if (local === undefined) return undefined;
    for (let scope = this.#function; scope !== undefined && scope !== local.owner; scope = scope.parent) {
      if (scope.upvalues.has(local)) return undefined;
      if (scope.upvalues.size >= MOST_UPVALUES) return `a function uses more than ${MOST_UPVALUES} local variables of functions around it`;
      scope.upvalues.add(local);
    }
    return undefined;
  }

  goto(name: string, line: number): void {
    const scope = this.#function;
    if (scope !== undefined) jump(scope.block, name, { line, locals: scope.locals.length });
  }

  label(name: string): string | undefined {
    const labels = this.#function?.block.labels;
    if (labels?.has(name) === true) return `the label ${quote(name)} is there twice`;
    labels?.add(name);
    return undefined;
  }

  /** Labels that have just come; at the end of a block they count as behind the scope of its locals. */
  land(names: readonly string[], isAtEnd: boolean): string | undefined {
    const scope = this.#function;
    if (scope === undefined) return undefined;
    const { pending, base } = scope.block;
    const locals = isAtEnd ? base : scope.locals.length;
    for (const name of names) {
      if ((pending.get(name)?.locals ?? locals) < locals) return `goto jumps over a local variable to the label ${quote(name)}`;
      pending.delete(name);
    }
    return undefined;
  }

  #forget({ locals }: FunctionScope, count: number): void {
    for (const { name } of locals.splice(count)) if (name !== undefined) this.#named.get(name)?.pop();
  }
}

function jump({ labels, pending }: BlockScope, name: string, from: Jump): void {
  if (!labels.has(name) && !pending.has(name)) pending.set(name, from);
}
