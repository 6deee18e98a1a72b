import { formatPath, type Problem } from "../problem.ts";
import { PROBLEM_CODES } from "../problem-codes.ts";
import type { ObjectReport, Reach, Refusal } from "./object-report.ts";

/** A condition of `istio.meta.v1alpha1.IstioStatus`, as JSON. */
export interface StatusCondition {
  readonly type: string;
  readonly status: "True" | "False" | "Unknown";
  readonly reason: string;
  readonly message: string;
  readonly lastTransitionTime: string;
  readonly observedGeneration: number;
}

/** What is written into the status of an object. Fields of others stay as they are. */
export interface WantedStatus {
  /** With those of others, as they were. */
  readonly conditions: readonly unknown[];
  readonly validationMessages: readonly unknown[];
  readonly observedGeneration: number;
}

/** The conditions that are ours to write: whether the object can be used, and whether it has reached the proxies. */
export const ACCEPTED = "Accepted";
/** The condition that says how many proxies have acknowledged the object. */
export const RECONCILED = "Reconciled";

const isOurs = (type: unknown): boolean => type === ACCEPTED || type === RECONCILED;

type Verdict = Pick<StatusCondition, "status" | "reason" | "message">;
type Json = Readonly<Record<string, unknown>>;

const MOST_LISTED = 5;
const LONGEST_ERROR = 300;
const LONGEST_MESSAGE = 4_000;

/**
 * The status an object should have, or undefined where `previous` says all of it already. Times change only where a condition turns, and counts only
 * while they are news: once all proxies have a generation, others that come and go are given it without a word.
 */
export function wantedStatus(report: ObjectReport, previous: unknown, now: number): WantedStatus | undefined {
  const before = jsonOf(previous);
  const generation = report.head.generation;
  const known = new Map(listOf(before.conditions).map((one) => [one.type, one]));
  const at = (type: string, verdict: Verdict): StatusCondition => condition({ type, verdict, generation, now }, known.get(type));
  const ours = [
    at(ACCEPTED, acceptedVerdict(report)),
    ...(report.reach === undefined ? [] : [at(RECONCILED, reachVerdict(report, report.reach, known.get(RECONCILED)))]),
  ];
  const wanted: WantedStatus = {
    conditions: withOurs(listOf(before.conditions), ours),
    validationMessages: [...listOf(before.validationMessages).filter(isOfOthers), ...messagesOf(report.problems)],
    observedGeneration: generation,
  };
  return isSaid(wanted, before) ? undefined : wanted;
}

/** A status without what is ours in it: a change there is no news to us. */
export function statusOfOthers(status: unknown): unknown {
  const { validationMessages: _messages, observedGeneration: _generation, ...rest } = jsonOf(status);
  return Array.isArray(rest.conditions) ? { ...rest, conditions: listOf(rest.conditions).filter(({ type }) => !isOurs(type)) } : rest;
}

/** Each in the place it has; so two who write a condition each do not move them back and forth. */
function withOurs(before: readonly Json[], ours: readonly StatusCondition[]): readonly unknown[] {
  const left = new Map(ours.map((one) => [one.type, one]));
  const kept = before.flatMap((one): readonly unknown[] => {
    if (!isOurs(one.type)) return [one];
    const mine = left.get(textOf(one.type));
    left.delete(textOf(one.type));
    return mine === undefined ? [] : [mine];
  });
  return [...kept, ...left.values()];
}

interface Turn {
  readonly type: string;
  readonly verdict: Verdict;
  readonly generation: number;
  readonly now: number;
}

function condition({ type, verdict, generation, now }: Turn, before: Json | undefined): StatusCondition {
  const since = before?.status === verdict.status ? before.lastTransitionTime : undefined;
  return {
    type,
    ...verdict,
    lastTransitionTime: typeof since === "string" ? since : `${new Date(now).toISOString().slice(0, 19)}Z`,
    observedGeneration: generation,
  };
}

function acceptedVerdict({ state, problems }: ObjectReport): Verdict {
  if (state === "shadowed")
    return {
      status: "False",
      reason: "Shadowed",
      message: "not used: a source of the control plane that comes first holds the same object",
    };
  const errors = problems.filter(({ level }) => level === "error");
  if (state === "current" && errors.length === 0)
    return { status: "True", reason: problems.length === 0 ? "Valid" : "Warnings", message: sentencesOf(problems) };
  const effect = state === "stale" ? "the last good version of it stays in force" : "it is left out";
  return { status: "False", reason: "Invalid", message: [...(errors.length === 0 ? [] : [sentencesOf(errors)]), effect].join("; ") };
}

function reachVerdict({ state, head: { generation } }: ObjectReport, reach: Reach, before: Json | undefined): Verdict {
  if (state !== "current") return { status: "False", reason: "NotAccepted", message: "this generation is not sent to proxies" };
  const { proxies, acknowledged, refusals } = reach;
  const counts = `${acknowledged}/${proxies} connected proxies have acknowledged generation ${generation}`;
  if (refusals.length > 0)
    return { status: "False", reason: "Rejected", message: cut(`${refusalText(refusals)}; ${counts}`, LONGEST_MESSAGE) };
  if (before?.status === "True" && Number(before.observedGeneration) === generation)
    return { status: "True", reason: textOf(before.reason), message: textOf(before.message) };
  if (proxies === 0) return { status: "Unknown", reason: "NoProxies", message: "no proxy is connected" };
  return acknowledged === proxies
    ? { status: "True", reason: "Acknowledged", message: counts }
    : { status: "False", reason: "InProgress", message: counts };
}

function refusalText(refusals: readonly Refusal[]): string {
  const listed = refusals
    .slice(0, MOST_LISTED)
    .map(({ proxy, resource, error }) => `${proxy} rejected ${resource}: ${cut(inOneLine(error), LONGEST_ERROR)}`);
  return [...listed, ...andMore(refusals)].join("; ");
}

function sentencesOf(problems: readonly Problem[]): string {
  const listed = problems
    .slice(0, MOST_LISTED)
    .map(({ path, message }) => (path.length === 0 ? message : `${formatPath(path)}: ${message}`));
  return cut([...listed, ...andMore(problems)].join("; "), LONGEST_MESSAGE);
}

const andMore = (all: readonly unknown[]): readonly string[] => (all.length > MOST_LISTED ? [`and ${all.length - MOST_LISTED} more`] : []);

/** Entries of `validationMessages` are told apart by their codes: those of Istio's own analysis look like IST0101. */
const isOfOthers = (message: Json): boolean => !Object.hasOwn(PROBLEM_CODES, textOf(jsonOf(message.type).code));

const messagesOf = (problems: readonly Problem[]): readonly unknown[] =>
  [...new Map(problems.map((problem) => [problem.code, problem])).values()].map(({ code, level }) => ({
    type: { name: code, code },
    level: level === "error" ? "ERROR" : "WARNING",
  }));

function isSaid({ conditions, validationMessages, observedGeneration }: WantedStatus, before: Json): boolean {
  const same = (wanted: readonly unknown[], held: unknown): boolean => canonical(wanted) === canonical(held ?? []);
  return (
    Number(before.observedGeneration) === observedGeneration &&
    same(conditions, before.conditions) &&
    same(validationMessages, before.validationMessages)
  );
}

/** Numbers of 64 bits may be texts in the JSON of others, and empty texts be left out. */
function canonical(value: unknown): string {
  return JSON.stringify(value, (key, one: unknown) => {
    if (key === "observedGeneration") return Number(one);
    if (key === "message" && one === "") return undefined;
    if (typeof one !== "object" || one === null || Array.isArray(one)) return one;
    return Object.fromEntries(Object.entries(one).sort(([a], [b]) => (a < b ? -1 : 1)));
  });
}

const inOneLine = (text: string): string => text.trim().replaceAll(/\s+/g, " ");
const cut = (text: string, most: number): string => (text.length <= most ? text : `${text.slice(0, most - 1)}…`);
const textOf = (value: unknown): string => (typeof value === "string" ? value : "");
const jsonOf = (value: unknown): Json => (typeof value === "object" && value !== null && !Array.isArray(value) ? (value as Json) : {});
const listOf = (value: unknown): readonly Json[] => (Array.isArray(value) ? value.map(jsonOf) : []);
