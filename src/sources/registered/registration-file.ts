import type { Log } from "../../base/log.ts";
import { type KeptList, keptList } from "./kept-list.ts";
import type { Registration } from "./registration.ts";

/** Where registrations outlive the process. */
export type RegistrationStore = KeptList<Registration>;

/** Keeps registrations in a file, so that they outlive a restart. */
export const registrationFile = (path: string, log: Log): RegistrationStore =>
  keptList({ path, of: "registered workloads", isEntry: isRegistration, log });

function isRegistration(value: unknown): value is Registration {
  if (typeof value !== "object" || value === null) return false;
  const { name, claim, registeredAt } = value as Partial<Record<keyof Registration, unknown>>;
  if (typeof name !== "string" || typeof registeredAt !== "number" || typeof claim !== "object" || claim === null) return false;
  const said = claim as Readonly<Record<string, unknown>>;
  return ["namespace", "group", "serviceAccount", "address", "network", "locality"].every((field) => typeof said[field] === "string");
}
