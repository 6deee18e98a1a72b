import { invariant } from "../../base/errors.ts";
import type { Report } from "../kind-def.ts";
import type { FieldPath } from "../problem.ts";
import { isRecord } from "./reading.ts";

/** Bounds a schema sets on one value, in the words of OpenAPI. They look at the JSON, where "" and absent still differ. */
export interface SchemaRule {
  readonly required?: readonly string[];
  readonly minItems?: number;
  readonly maxItems?: number;
  readonly minProperties?: number;
  readonly maxProperties?: number;
  readonly minLength?: number;
  readonly maxLength?: number;
  readonly pattern?: RegExp;
  /** The field that tells the elements of a list apart. */
  readonly uniqueBy?: string;
}

/** Rules by path below the body: `ports[]` are the elements of a list, `labels{}` the values of a map, "" the body itself. */
export type SchemaRules = Readonly<Record<string, SchemaRule>>;

/** Checks a body against compiled rules. */
export type RuleChecker = (json: unknown, report: Report, path: FieldPath) => void;

interface RuleNode {
  rule: SchemaRule | undefined;
  /** The field's other name, where it differs. */
  readonly protoName: string | undefined;
  readonly below: Map<string, RuleNode>;
}

const LIST = "[]";
const MAP = "{}";

/** Turns a table of rules into a walk that visits only what the rules speak of. */
export function compileRules(rules: SchemaRules): RuleChecker {
  const root: RuleNode = newNode("");
  for (const [path, rule] of Object.entries(rules)) nodeAt(root, path).rule = rule;
  return (json, report, path) => visit(root, json, { report, path: [...path] });
}

interface Walk {
  readonly report: Report;
  readonly path: (string | number)[];
}

function newNode(name: string): RuleNode {
  const other = protoName(name);
  return { rule: undefined, protoName: other === name ? undefined : other, below: new Map() };
}

function nodeAt(root: RuleNode, path: string): RuleNode {
  let node = root;
  for (const part of path.match(/[^.[\]{}]+|\[\]|\{\}/g) ?? []) {
    const next = node.below.get(part) ?? newNode(part);
    node.below.set(part, next);
    node = next;
  }
  invariant(path === "" || node !== root, `path of a schema rule: ${path}`);
  return node;
}

function visit(node: RuleNode, json: unknown, walk: Walk): void {
  if (json === undefined || json === null) return;
  if (node.rule !== undefined) check(node.rule, json, walk);
  const descend = (next: RuleNode, key: string | number, value: unknown): void => {
    walk.path.push(key);
    visit(next, value, walk);
    walk.path.pop();
  };
  const items = node.below.get(LIST);
  const values = node.below.get(MAP);
  if (items !== undefined && Array.isArray(json)) for (let index = 0; index < json.length; index++) descend(items, index, json[index]);
  if (!isRecord(json)) return;
  if (values !== undefined) for (const key of Object.keys(json)) descend(values, key, json[key]);
  else
    for (const [key, next] of node.below)
      descend(next, key, json[key] ?? (next.protoName === undefined ? undefined : json[next.protoName]));
}

function check(rule: SchemaRule, json: unknown, walk: Walk): void {
  const say = (message: string): void => walk.report("field.invalid", [...walk.path], message);
  if (typeof json === "string") checkText(rule, json, say);
  else if (Array.isArray(json)) checkList(rule, json, say);
  else if (isRecord(json)) {
    const size = Object.keys(json).length;
    if (size < (rule.minProperties ?? 0)) say(`must have at least ${rule.minProperties} entry`);
    if (size > (rule.maxProperties ?? size)) say(`must have at most ${rule.maxProperties} entries`);
    for (const name of rule.required ?? []) {
      if ((json[name] ?? json[protoName(name)] ?? undefined) === undefined)
        walk.report("field.required", [...walk.path, name], "must be set");
    }
  }
}

function checkText(rule: SchemaRule, text: string, say: (message: string) => void): void {
  if (text.length < (rule.minLength ?? 0)) say("must not be empty");
  else if (text.length > (rule.maxLength ?? text.length)) say(`must have at most ${rule.maxLength} characters`);
  else if (rule.pattern !== undefined && !rule.pattern.test(text)) say(`must match ${rule.pattern.source}`);
}

function checkList(rule: SchemaRule, list: readonly unknown[], say: (message: string) => void): void {
  if (list.length < (rule.minItems ?? 0)) say(`must have at least ${rule.minItems} element`);
  if (list.length > (rule.maxItems ?? list.length)) say(`must have at most ${rule.maxItems} elements`);
  const by = rule.uniqueBy;
  if (by === undefined) return;
  const keys = list.map((item) => (isRecord(item) ? item[by] : undefined)).filter((key) => key !== undefined);
  if (new Set(keys).size < keys.length) say(`two elements have the same ${by}`);
}

const protoName = (jsonName: string): string => jsonName.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
