import { usageError } from "../arguments.ts";
import type { Command } from "../command.ts";
import { ISTIOD_FLAGS } from "../istiod-client.ts";
import { obtainJoinToken, ttlOf } from "../join/obtain-token.ts";

export const workloadTokenCommand: Command = {
  name: "x workload token",
  aliases: ["experimental workload token"],
  about: "Print a token with which one machine gets its first certificate",
  operands: "",
  flags: [
    { name: "namespace", short: "n", value: "NAMESPACE", about: "namespace of the workload (default: default)" },
    { name: "serviceAccount", short: "s", value: "NAME", about: "its service account (default: default)" },
    { name: "ttl", value: "DURATION", about: "how long the token can be used, at most 168h (default: 1h)" },
    ...ISTIOD_FLAGS,
  ],
  outputs: ["text", "json", "yaml"],
  notes: [
    "The machine keeps it in var/run/secrets/tokens/istio-token. It is good for one certificate; with that the workload renews.",
    "Where istiod does not answer on this machine, the token is signed with its key in var/lib/istio, if that can be read.",
  ],
  async run(args, host) {
    if (args.operands.length > 0) throw usageError(`${JSON.stringify(args.operands[0])} is not understood; everything is given by flags`);
    const namespace = args.text("namespace") ?? "default";
    const serviceAccount = args.text("serviceAccount") ?? "default";
    const { token, expiresAt } = await obtainJoinToken({ namespace, serviceAccount, ttlMs: ttlOf(args) }, args, host);
    return { data: { token, namespace, serviceAccount, expiresAt: new Date(expiresAt).toISOString() }, text: token };
  },
};
