import { EdgeError, messageOf } from "../base/errors.ts";

/** Why `address` of the control plane cannot be had, in one sentence with what to do about it. */
export function listenError(address: string, cause: unknown): EdgeError {
  const code = cause instanceof Error && "code" in cause ? cause.code : undefined;
  const [reason, hint] =
    code === "EADDRINUSE"
      ? [`${address} is taken by another program`, "stop the other program, or choose another address under `listen` in mesh.yaml"]
      : [`cannot listen on ${address}: ${messageOf(cause)}`, REMEDIES.get(code) ?? "choose another address under `listen` in mesh.yaml"];
  return new EdgeError("port_taken", reason, { cause, hint });
}

const REMEDIES: ReadonlyMap<unknown, string> = new Map([
  ["EADDRNOTAVAIL", "choose an address of this machine under `listen` in mesh.yaml"],
  ["EACCES", "choose a port above 1023 under `listen` in mesh.yaml, or let the program bind lower ones (CAP_NET_BIND_SERVICE)"],
]);
