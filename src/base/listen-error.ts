import { EdgeError, messageOf } from "./errors.ts";

/**
 * Why an address or port cannot be had, in one sentence with what to do about it. `setting` ends "choose another …": what the address is set by. All programs
 * say it in these words.
 */
export function listenError(address: string, cause: unknown, setting = "address under `listen` in mesh.yaml"): EdgeError {
  const code = cause instanceof Error && "code" in cause ? cause.code : undefined;
  const reason = code === "EADDRINUSE" ? `${address} is taken by another program` : `cannot listen on ${address}: ${messageOf(cause)}`;
  return new EdgeError("port_taken", reason, { cause, hint: `${REMEDIES.get(code) ?? ""}choose another ${setting}` });
}

const REMEDIES: ReadonlyMap<unknown, string> = new Map([
  ["EADDRINUSE", "stop the other program, or "],
  ["EADDRNOTAVAIL", "it is no address of this machine: "],
  ["EACCES", "let the program bind ports below 1024 (CAP_NET_BIND_SERVICE), or "],
]);
