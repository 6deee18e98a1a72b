import { readFile } from "node:fs/promises";
import type { Clock } from "../base/clock.ts";
import { EdgeError, messageOf } from "../base/errors.ts";
import { writeWholeFile } from "../base/whole-file.ts";
import { AuthnError } from "./authn-error.ts";

/** Remembers which tokens were used, also over restarts, for as long as they could be shown again. */
export interface UsedTokens {
  isUsed(id: string): boolean;
  /** Takes the only use; resolves when that is safe on disk. Rejects with `AuthnError` where it was taken, with `EdgeError` where the disk does not take it. */
  take(id: string, expiresAt: number): Promise<void>;
  /** Gives it back: what it was taken for came to nothing. */
  giveBack(id: string): Promise<void>;
}

/** Nobody issues so many by hand in a week; beyond it none are taken rather than some forgotten. */
const MOST_REMEMBERED = 100_000;
/** A clock that is set back makes an expired token valid again: uses are remembered for a day longer. */
const LONGER_MS = 24 * 3_600_000;

/** Reads what was used before. Throws `EdgeError` where the file cannot be read: forgetting would make used tokens good again. */
export async function openUsedTokens(path: string, clock: Clock): Promise<UsedTokens> {
  const used = await readUsed(path);
  let writing: Promise<void> = Promise.resolve();

  const forget = (): void => {
    for (const [id, expiresAt] of used) if (expiresAt + LONGER_MS < clock.now()) used.delete(id);
  };
  const save = (): Promise<void> => {
    const saved = writing.then(() => {
      forget();
      return writeWholeFile(path, `${JSON.stringify(Object.fromEntries(used))}\n`);
    });
    writing = saved.catch(() => undefined);
    return saved;
  };
  return {
    isUsed: (id) => used.has(id),
    async take(id, expiresAt) {
      if (used.has(id)) throw spent();
      if (used.size >= MOST_REMEMBERED) forget();
      if (used.size >= MOST_REMEMBERED) throw new AuthnError("token used", "too many join tokens were used lately; none is taken for now");
      used.set(id, expiresAt);
      try {
        await save();
      } catch (error) {
        used.delete(id);
        throw new EdgeError("state_unwritable", "the control plane cannot remember the use of the join token, so it takes none for now", {
          cause: error,
          hint: `make room for ${path}; the token stays good meanwhile`,
        });
      }
    },
    async giveBack(id) {
      used.delete(id);
      await save().catch(() => undefined);
    },
  };
}

/** What is said of a token that was used before. */
export const spent = (): AuthnError =>
  new AuthnError(
    "token used",
    "the join token was used before; a workload renews with its certificate, another one needs a token of its own",
  );

async function readUsed(path: string): Promise<Map<string, number>> {
  try {
    const value: unknown = JSON.parse(await readFile(path, "utf8"));
    if (typeof value !== "object" || value === null) throw new Error("it is not an object");
    return new Map(Object.entries(value).flatMap(([id, at]) => (typeof at === "number" ? [[id, at]] : [])));
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === "ENOENT") return new Map();
    throw new EdgeError("ca_unusable", `the list of used join tokens in ${path} cannot be read: ${messageOf(error)}`, {
      hint: "restore the file; if it is lost, remove it together with join-token.key beside it, so that no used token counts again",
    });
  }
}
