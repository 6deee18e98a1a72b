import { spawn } from "node:child_process";
import type { Clock } from "../base/clock.ts";
import { messageOf } from "../base/errors.ts";
import { Secret } from "../base/secret.ts";
import { isPart, textField, unusable } from "./kube-config.ts";

/** A program that says who we are (`users[].user.exec` of a kubeconfig). */
export interface ExecPlugin {
  readonly command: string;
  readonly args: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  readonly apiVersion: string;
  readonly installHint: string | undefined;
  /** What it is told of the cluster, where the kubeconfig wants it told. */
  readonly cluster: Readonly<Record<string, unknown>> | undefined;
}

/** What the program gave. */
export interface ExecCredential {
  readonly token: Secret<string> | undefined;
  readonly certificate: string | undefined;
  readonly key: Secret<string> | undefined;
  /** Ms since the epoch; undefined where it does not end. */
  readonly expiresAt: number | undefined;
}

const PATIENCE_MS = 60_000;
const MOST_OUTPUT = 1024 * 1024;

/** Runs the program once. It has no terminal: one that wants to ask a person gets no answer, and is ended after a minute. */
export async function runExecPlugin(plugin: ExecPlugin, clock: Clock): Promise<ExecCredential> {
  const info = {
    apiVersion: plugin.apiVersion,
    kind: "ExecCredential",
    spec: { interactive: false, ...(plugin.cluster !== undefined && { cluster: plugin.cluster }) },
  };
  const output = await outputOf(plugin, JSON.stringify(info), clock);
  return credentialIn(output, plugin);
}

function outputOf(plugin: ExecPlugin, info: string, clock: Clock): Promise<string> {
  return new Promise((resolve, reject) => {
    const env = { ...process.env, ...plugin.env, KUBERNETES_EXEC_INFO: info };
    const child = spawn(plugin.command, plugin.args, { env, stdio: ["ignore", "pipe", "inherit"] });
    let output = "";
    const fail = (why: string): void => {
      child.kill("SIGKILL");
      const hint = plugin.installHint;
      reject(unusable(`the credential plugin ${plugin.command} ${why}`, hint));
    };
    const cancel = clock.after(PATIENCE_MS, () => fail(`gave no answer within ${PATIENCE_MS / 1000} s`));
    child.stdout.setEncoding("utf8").on("data", (chunk: string) => {
      output += chunk;
      if (output.length > MOST_OUTPUT) fail("says too much");
    });
    child.once("error", (error) => {
      cancel();
      fail(`cannot be run: ${messageOf(error)}`);
    });
    child.once("close", (status) => {
      cancel();
      if (status === 0) resolve(output);
      else fail(`ended with status ${status ?? "none"}`);
    });
  });
}

/** Its output is never part of a message: it holds the credential. */
function credentialIn(output: string, plugin: ExecPlugin): ExecCredential {
  let said: unknown;
  try {
    said = JSON.parse(output);
  } catch {
    throw unusable(`the credential plugin ${plugin.command} did not print JSON`);
  }
  const status = isPart(said) && said.kind === "ExecCredential" && isPart(said.status) ? said.status : undefined;
  if (status === undefined) throw unusable(`the credential plugin ${plugin.command} did not print an ExecCredential with a status`);
  const [token, certificate, key] = [
    textField(status, "token"),
    textField(status, "clientCertificateData"),
    textField(status, "clientKeyData"),
  ];
  if (token === undefined && (certificate === undefined || key === undefined))
    throw unusable(`the credential plugin ${plugin.command} gave neither a token nor a certificate with its key`);
  const ends = Date.parse(textField(status, "expirationTimestamp") ?? "");
  return {
    token: token === undefined ? undefined : new Secret(token),
    certificate,
    key: key === undefined ? undefined : new Secret(key),
    expiresAt: Number.isFinite(ends) ? ends : undefined,
  };
}
