import { quote } from "../../../base/quote.ts";
import { BINARY, UNARY, UNARY_BINDING } from "./operators.ts";
import { type LuaFault, LuaScopes } from "./scopes.ts";
import { LuaScanner, type LuaToken } from "./tokens.ts";

/** LuaJIT's: how deep blocks and expressions may stand in each other, with the targets of an assignment and the labels in a row. */
const MOST_LEVELS = 200;
/** LuaJIT's: how many values a function may hold at once, local variables among them. */
const MOST_HELD = 249;
/** What a call holds beside its arguments: the function and where to return to. */
const CALL_STATE = 2;

const BLOCK_ENDS: ReadonlySet<string> = new Set(["else", "elseif", "end", "until"]);
const CONSTANTS: ReadonlySet<string> = new Set(["nil", "true", "false"]);
/** What a `for` keeps for itself beside the variables that are named. */
const LOOP_STATE = [undefined, undefined, undefined] as const;

/**
 * What keeps a text from being a script for Envoy, which refuses a listener with such a one. The language is that of Envoy's LuaJIT: Lua 5.1 with what it
 * has of later versions. Only what is found without running it: grammar, labels, depth, numbers of variables and of values held. Scripts beyond what people
 * write can pass and be refused: a loop of more than 32,767 instructions, 65,536 constants, and some that hold nearly too many values.
 */
export function luaFault(source: string): LuaFault | undefined {
  return new Parser(new LuaScanner(source)).fault();
}

/** What the beginning of an expression turned out to be, where that matters: only a place can be assigned to, only a call is a statement. */
type Primary = "call" | "place" | "value";

/** Recursive descent; every method returns whether what it names was found, and the first fault is kept. */
class Parser {
  readonly #scanner: LuaScanner;
  readonly #scopes = new LuaScopes();
  #token: LuaToken;
  /** The one behind it, where somebody had to look so far. */
  #ahead: LuaToken | undefined;
  #level = 0;
  /** Values that the function has in hand for certain, beside its local variables. What of operands and targets is held besides is not counted. */
  #held = 0;
  #fault: LuaFault | undefined;

  constructor(scanner: LuaScanner) {
    this.#scanner = scanner;
    this.#token = scanner.next();
  }

  fault(): LuaFault | undefined {
    this.#scopes.enterFunction(true);
    if (this.#chunk() && (this.#token.kind === "end" || this.#unexpected())) this.#fault = this.#scopes.leaveFunction();
    return this.#fault;
  }

  #advance(): void {
    this.#token = this.#ahead ?? this.#scanner.next();
    this.#ahead = undefined;
  }

  #lookAhead(): LuaToken {
    this.#ahead ??= this.#scanner.next();
    return this.#ahead;
  }

  #is(sign: string): boolean {
    return isSign(this.#token, sign);
  }

  #take(sign: string): boolean {
    const fits = this.#is(sign);
    if (fits) this.#advance();
    return fits;
  }

  #takeKind(kind: LuaToken["kind"]): boolean {
    const fits = this.#token.kind === kind;
    if (fits) this.#advance();
    return fits;
  }

  #fail(reason: string, line = this.#token.line): false {
    this.#fault ??= { line, reason };
    return false;
  }

  /** For checks that give what is wrong. */
  #allow(reason: string | undefined): boolean {
    return reason === undefined || this.#fail(reason);
  }

  #unexpected(wanted?: string): false {
    const { kind, text } = this.#token;
    if (kind === "fault") return this.#fail(text);
    const found = kind === "end" ? "end of the script" : quote(text);
    return this.#fail(wanted === undefined ? `unexpected ${found}` : `${wanted} expected, found ${found}`);
  }

  #expect(sign: string): boolean {
    return this.#take(sign) || this.#unexpected(quote(sign));
  }

  /** The end of what an opening began: where it is missing, the opening is what one looks for. */
  #close(sign: string, { text, line }: LuaToken): boolean {
    return this.#take(sign) || this.#unexpected(`${quote(sign)} for ${quote(text)} of line ${line}`);
  }

  #name(): string | undefined {
    const { text } = this.#token;
    if (this.#takeKind("name")) return text;
    this.#unexpected("a name");
    return undefined;
  }

  #deeper(): boolean {
    this.#level++;
    return this.#level < MOST_LEVELS || this.#fail(`more than ${MOST_LEVELS - 1} levels stand in each other`);
  }

  #hold(count: number): boolean {
    this.#held += count;
    return this.#held + this.#scopes.localCount <= MOST_HELD || this.#fail(`a function holds more than ${MOST_HELD} values at once`);
  }

  #isBlockEnd(): boolean {
    const { kind, text } = this.#token;
    return kind === "end" || (kind === "sign" && BLOCK_ENDS.has(text));
  }

  #chunk(): boolean {
    if (!this.#deeper()) return false;
    for (let isLast = false; !isLast && !this.#isBlockEnd(); this.#take(";")) {
      isLast = this.#is("return");
      if (!this.#statement()) return false;
    }
    this.#level--;
    return true;
  }

  #block(isLoop = false): boolean {
    this.#scopes.enterBlock(isLoop);
    const fits = this.#chunk();
    this.#scopes.leaveBlock();
    return fits;
  }

  #statement(): boolean {
    const opening = this.#token;
    if (this.#take("if")) return this.#branches(opening);
    if (this.#take("while")) return this.#expression() && this.#expect("do") && this.#block(true) && this.#close("end", opening);
    if (this.#take("do")) return this.#block() && this.#close("end", opening);
    if (this.#take("for")) return this.#for(opening);
    if (this.#take("repeat")) return this.#repeat(opening);
    if (this.#take("function")) return this.#function(opening);
    if (this.#take("local")) return this.#take("function") ? this.#localFunction(opening) : this.#local();
    if (this.#take("return")) return this.#isBlockEnd() || this.#is(";") || this.#expressions();
    if (this.#take("break")) return this.#scopes.isInLoop || this.#fail("break stands in no loop", opening.line);
    if (this.#take("goto")) return this.#goto(opening);
    if (this.#is("::")) return this.#labels();
    return this.#take(";") || this.#callOrAssignment();
  }

  #branches(opening: LuaToken): boolean {
    do if (!this.#expression() || !this.#expect("then") || !this.#block()) return false;
    while (this.#take("elseif"));
    return (!this.#take("else") || this.#block()) && this.#close("end", opening);
  }

  #for(opening: LuaToken): boolean {
    const names = this.#names();
    if (names === undefined) return false;
    const isCounting = names.length === 1 && this.#take("=");
    if (!isCounting && !this.#take("in")) return this.#unexpected(names.length === 1 ? '"=" or "in"' : '"in"');
    const fits = isCounting ? this.#range() : this.#expressions();
    if (!fits || !this.#expect("do")) return false;
    this.#scopes.enterBlock(true);
    const body = this.#allow(this.#scopes.declare([...LOOP_STATE, ...names])) && this.#block() && this.#close("end", opening);
    this.#scopes.leaveBlock();
    return body;
  }

  #range(): boolean {
    return this.#expression() && this.#expect(",") && this.#expression() && (!this.#take(",") || this.#expression());
  }

  /** Its condition knows the variables of its body. */
  #repeat(opening: LuaToken): boolean {
    this.#scopes.enterBlock(true);
    const fits = this.#chunk() && this.#close("until", opening) && this.#expression();
    this.#scopes.leaveBlock();
    return fits;
  }

  #function(opening: LuaToken): boolean {
    const name = this.#name();
    if (name === undefined || !this.#allow(this.#scopes.use(name))) return false;
    while (this.#take(".")) if (this.#name() === undefined) return false;
    if (!this.#take(":")) return this.#body(opening, []);
    return this.#name() !== undefined && this.#body(opening, ["self"]);
  }

  #localFunction(opening: LuaToken): boolean {
    const name = this.#name();
    return name !== undefined && this.#allow(this.#scopes.declare([name])) && this.#body(opening, []);
  }

  #local(): boolean {
    const names = this.#names();
    return names !== undefined && (!this.#take("=") || this.#expressions()) && this.#allow(this.#scopes.declare(names));
  }

  #names(): readonly string[] | undefined {
    const names: string[] = [];
    do {
      const name = this.#name();
      if (name === undefined) return undefined;
      names.push(name);
    } while (this.#take(","));
    return names;
  }

  #goto({ line }: LuaToken): boolean {
    const name = this.#name();
    if (name !== undefined) this.#scopes.goto(name, line);
    return name !== undefined;
  }

  /** All labels in a row, since whether the block ends behind them matters to each. */
  #labels(): boolean {
    const names: string[] = [];
    while (this.#take("::")) {
      if (names.length > 0 && !this.#deeper()) return false;
      const name = this.#name();
      if (name === undefined || !this.#allow(this.#scopes.label(name)) || !this.#expect("::")) return false;
      names.push(name);
      while (this.#take(";"));
    }
    this.#level -= names.length - 1;
    return this.#allow(this.#scopes.land(names, this.#isBlockEnd() && !this.#is("until")));
  }

  #callOrAssignment(): boolean {
    let target = this.#primary();
    if (target === "call") return true;
    for (let count = 1; target !== undefined; count++) {
      if (target !== "place") return this.#fail("what is assigned to must be a variable or a field");
      if (!this.#take(",")) return this.#expect("=") && this.#expressions(count);
      target = this.#primary();
      if (target !== undefined && this.#level + count >= MOST_LEVELS) return this.#fail("too many variables are assigned to at once");
    }
    return false;
  }

  /** All are held until the last is there. That one goes where it is wanted at once, if as many are wanted. */
  #expressions(wanted = 0): boolean {
    const held = this.#held;
    for (let count = 1; this.#expression(); count++) {
      const isLast = !this.#take(",");
      if (!(isLast && count === wanted) && !this.#hold(1)) return false;
      if (!isLast) continue;
      this.#held = held;
      return true;
    }
    return false;
  }

  /** An operand and the operators behind it that bind more strongly than `binding`. */
  #expression(binding = 0): boolean {
    if (!this.#deeper()) return false;
    const held = this.#held;
    const { kind, text } = this.#token;
    if (kind === "sign" && UNARY.has(text)) {
      this.#advance();
      if (!this.#expression(UNARY_BINDING)) return false;
    } else if (!this.#operand()) return false;
    for (;;) {
      const { kind: sort, text: sign } = this.#token;
      const operator = sort === "sign" ? BINARY.get(sign) : undefined;
      if (operator === undefined || operator.left <= binding) break;
      this.#advance();
      if ((sign === ".." && !this.#hold(1)) || !this.#expression(operator.right)) return false;
      this.#held = held;
    }
    this.#level--;
    return true;
  }

  #operand(): boolean {
    const found = this.#literal() ?? this.#primary();
    return found !== undefined && found !== false;
  }

  /** False where one begins and is wrong, undefined where none begins. */
  #literal(): "value" | false | undefined {
    const opening = this.#token;
    const isPlain = this.#takeKind("number") || this.#takeKind("text") || (CONSTANTS.has(opening.text) && this.#take(opening.text));
    if (isPlain) return "value";
    if (this.#is("{")) return this.#table() && "value";
    if (this.#take("function")) return this.#body(opening, []) && "value";
    if (!this.#take("...")) return undefined;
    return this.#scopes.isVararg ? "value" : this.#fail('"..." stands in a function without it', opening.line);
  }

  #primary(): Primary | undefined {
    let found = this.#start();
    for (let isInHand = false; found !== undefined; isInHand = true) {
      const opening = this.#token;
      if (this.#take(".")) found = this.#name() === undefined ? undefined : "place";
      else if (this.#take("[")) found = this.#key(isInHand) && this.#close("]", opening) ? "place" : undefined;
      else if (this.#take(":"))
        found =
          this.#name() !== undefined && (this.#isArguments() || this.#unexpected("arguments")) ? this.#call(CALL_STATE + 1) : undefined;
      else if (this.#isArguments()) found = this.#call(CALL_STATE);
      else return found;
    }
    return undefined;
  }

  #start(): Primary | undefined {
    const opening = this.#token;
    if (this.#take("(")) return this.#expression() && this.#close(")", opening) ? "value" : undefined;
    if (this.#takeKind("name")) return this.#allow(this.#scopes.use(opening.text)) ? "place" : undefined;
    this.#unexpected();
    return undefined;
  }

  #isArguments(): boolean {
    return this.#is("(") || this.#is("{") || this.#token.kind === "text";
  }

  #key(isTableInHand: boolean): boolean {
    const held = this.#held;
    const fits = this.#hold(isTableInHand ? 1 : 0) && this.#expression();
    this.#held = held;
    return fits;
  }

  #call(state: number): Primary | undefined {
    const [opening, held] = [this.#token, this.#held];
    const fits = this.#hold(state) && (this.#takeKind("text") ? this.#hold(1) : this.#is("{") ? this.#table() : this.#arguments(opening));
    this.#held = held;
    return fits ? "call" : undefined;
  }

  #arguments(opening: LuaToken): boolean {
    this.#take("(");
    return this.#take(")") || (this.#expressions() && this.#close(")", opening));
  }

  #table(): boolean {
    const [opening, held] = [this.#token, this.#held];
    this.#take("{");
    if (!this.#hold(1)) return false;
    while (!this.#is("}")) {
      if (!this.#field()) return false;
      if (!this.#take(",") && !this.#take(";")) break;
    }
    this.#held = held;
    return this.#close("}", opening);
  }

  #field(): boolean {
    const opening = this.#token;
    if (this.#take("[")) {
      if (!this.#expression() || !this.#close("]", opening) || !this.#expect("=")) return false;
    } else if (opening.kind === "name" && isSign(this.#lookAhead(), "=")) {
      this.#advance();
      this.#advance();
    }
    return this.#expression();
  }

  #body(opening: LuaToken, first: readonly string[]): boolean {
    if (!this.#expect("(")) return false;
    const names = [...first];
    let isVararg = false;
    if (!this.#is(")"))
      do {
        isVararg = this.#take("...");
        const name = isVararg ? "" : this.#name();
        if (name === undefined) return false;
        if (!isVararg) names.push(name);
      } while (!isVararg && this.#take(","));
    const held = this.#held;
    this.#held = 0;
    this.#scopes.enterFunction(isVararg);
    const fits = this.#expect(")") && this.#allow(this.#scopes.declare(names)) && this.#chunk() && this.#close("end", opening);
    const fault = this.#scopes.leaveFunction();
    this.#held = held;
    return fits && (fault === undefined || this.#fail(fault.reason, fault.line));
  }
}

const isSign = ({ kind, text }: LuaToken, sign: string): boolean => kind === "sign" && text === sign;
