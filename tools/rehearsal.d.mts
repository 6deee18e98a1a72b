import type { Rehearsal, UsedCode } from "./snapshot.mjs";

export function rehearse(rehearsal: Rehearsal): Promise<UsedCode>;

export function readLog(text: string): UsedCode;
