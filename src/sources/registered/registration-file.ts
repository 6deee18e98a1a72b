import { readFile } from "node:fs/promises";
import { messageOf } from "../../base/errors.ts";
import type { Log } from "../../base/log.ts";
import { writeWholeFile } from "../../base/whole-file.ts";
import type { Registration } from "./registration.ts";

/** Where registrations outlive the process. A cluster keeps them as objects; without one it is a file. Nothing here throws. */
export interface RegistrationStore {
  load(): Promise<readonly Registration[]>;
  /** Something changed: what `all` gives is written, soon. */
  save(all: () => readonly Registration[]): void;
  flush(): Promise<void>;
}

/** One file, written whole; while a write is under way, further changes make one more. */
export function registrationFile(path: string, log: Log): RegistrationStore {
  let wanted: (() => readonly Registration[]) | undefined;
  let writing: Promise<void> | undefined;
  const write = async (): Promise<void> => {
    while (wanted !== undefined) {
      const all = wanted;
      wanted = undefined;
      await writeWholeFile(path, `${JSON.stringify(all())}\n`).catch((error: unknown) =>
        log.warn({ path, reason: messageOf(error) }, "registered workloads cannot be kept on disk; a restart would forget them"),
      );
    }
    writing = undefined;
  };
  return {
    async load() {
      try {
        const value: unknown = JSON.parse(await readFile(path, "utf8"));
        return Array.isArray(value) ? value.filter(isRegistration) : [];
      } catch (error) {
        if (!(error instanceof Error && "code" in error && error.code === "ENOENT"))
          log.warn(
            { path, reason: messageOf(error) },
            "the registered workloads of before cannot be read; they register again when they connect",
          );
        return [];
      }
    },
    save(all) {
      wanted = all;
      writing ??= write();
    },
    flush: async () => writing,
  };
}

function isRegistration(value: unknown): value is Registration {
  if (typeof value !== "object" || value === null) return false;
  const { name, claim, registeredAt } = value as Partial<Record<keyof Registration, unknown>>;
  if (typeof name !== "string" || typeof registeredAt !== "number" || typeof claim !== "object" || claim === null) return false;
  const said = claim as Readonly<Record<string, unknown>>;
  return ["namespace", "group", "serviceAccount", "address", "network", "locality"].every((field) => typeof said[field] === "string");
}
