import { readFile } from "node:fs/promises";
import type { Clock } from "../base/clock.ts";
import { messageOf } from "../base/errors.ts";
import { Secret } from "../base/secret.ts";
import { type ExecCredential, type ExecPlugin, runExecPlugin } from "./exec-plugin.ts";
import { isPart, type Named, pathIn, textField, unusable } from "./kube-config.ts";

/** Who we are to the API server, as of now. */
export interface KubeIdentity {
  readonly headers: Readonly<Record<string, Secret<string>>>;
  readonly certificate?: string;
  readonly key?: Secret<string>;
}

/** Gives credentials that are valid now; asked before every request, so rotated tokens and renewed certificates are taken up. */
export interface KubeCredentials {
  current(): Promise<KubeIdentity>;
  /** The server did not know us: what is remembered is worth nothing any more. */
  refused(): void;
}

export interface CredentialOptions {
  readonly clock: Clock;
  /** Whether programs named in a kubeconfig may be run. Never for one that somebody else could have written. */
  readonly allowExec: boolean;
  /** Whether files named in a kubeconfig may be read. */
  readonly allowFiles: boolean;
  /** What an exec plugin may be told of the cluster. */
  readonly cluster?: Readonly<Record<string, unknown>>;
}

/** A token file is read again after this long: Kubernetes renews projected tokens well before they end. */
const REREAD_MS = 10_000;
/** A plugin's credential is renewed this long before it ends. */
const EARLY_MS = 30_000;

/** Of who shows nothing. */
export const NO_CREDENTIALS: KubeCredentials = { current: async () => ({ headers: {} }), refused: () => {} };

/** The token of a pod's service account, or any other that lies in a file. */
export function tokenFileCredentials(path: string, clock: Clock): KubeCredentials {
  const token = rereading(path, clock);
  return {
    current: async () => ({ headers: bearer((await token.read()).trim()) }),
    refused: token.forget,
  };
}

/** What a user entry of a kubeconfig says. */
export function userCredentials(user: Named, options: CredentialOptions): KubeCredentials {
  const { content, dir } = user;
  if (content["auth-provider"] !== undefined)
    throw unusable(`user ${JSON.stringify(user.name)} uses auth-provider, which Kubernetes has given up`, "use an exec plugin or a token");
  const impersonated = impersonation(content);
  const base = baseCredentials(user, options);
  const certificate = material({ content, dir, name: "client-certificate" }, options);
  const key = material({ content, dir, name: "client-key" }, options);
  return {
    async current() {
      const identity = await base.current();
      const [chain, secret] = [await certificate?.read(), await key?.read()];
      return {
        ...identity,
        headers: { ...identity.headers, ...impersonated },
        ...(chain !== undefined && secret !== undefined && { certificate: chain, key: new Secret(secret) }),
      };
    },
    refused() {
      base.refused();
      certificate?.forget();
      key?.forget();
    },
  };
}

/** A text that a kubeconfig holds itself (`-data`, base64) or in a file; undefined where it names none. */
export function material(
  { content, dir, name }: { readonly content: Readonly<Record<string, unknown>>; readonly dir: string; readonly name: string },
  options: Pick<CredentialOptions, "clock" | "allowFiles">,
): Rereading | undefined {
  const data = textField(content, `${name}-data`);
  if (data !== undefined) {
    const text = Buffer.from(data, "base64").toString("utf8");
    return { read: async () => text, forget: () => {} };
  }
  const file = textField(content, name);
  if (file === undefined) return undefined;
  if (!options.allowFiles) throw unusable(`this kubeconfig may not name files, but ${name} does`, `use ${name}-data`);
  return rereading(pathIn(dir, file), options.clock);
}

function baseCredentials({ name, content, dir }: Named, options: CredentialOptions): KubeCredentials {
  const file = textField(content, "tokenFile");
  if (file !== undefined) {
    if (!options.allowFiles) throw unusable("this kubeconfig may not name files, but tokenFile does", "use token");
    return tokenFileCredentials(pathIn(dir, file), options.clock);
  }
  const token = textField(content, "token");
  if (token !== undefined) return fixed(bearer(token));
  const [username, password] = [textField(content, "username"), textField(content, "password")];
  if (username !== undefined) {
    return fixed({ authorization: new Secret(`Basic ${Buffer.from(`${username}:${password ?? ""}`).toString("base64")}`) });
  }
  if (!isPart(content.exec)) return NO_CREDENTIALS;
  if (!options.allowExec) throw unusable(`user ${JSON.stringify(name)} names a program to run, which is not allowed here`, "use a token");
  return pluginCredentials(pluginOf(content.exec, dir, options.cluster), options.clock);
}

/** Runs the plugin when there is no credential yet, and before the one there is ends. Requests that wait share one run. */
function pluginCredentials(plugin: ExecPlugin, clock: Clock): KubeCredentials {
  let held: ExecCredential | undefined;
  let running: Promise<ExecCredential> | undefined;
  const isFresh = ({ expiresAt }: ExecCredential): boolean => expiresAt === undefined || expiresAt - EARLY_MS > clock.now();
  const fetch = (): Promise<ExecCredential> => {
    running ??= runExecPlugin(plugin, clock).finally(() => {
      running = undefined;
    });
    return running;
  };
  return {
    async current() {
      if (held === undefined || !isFresh(held)) held = await fetch();
      const { token, certificate, key } = held;
      return {
        headers: token === undefined ? {} : bearer(token.reveal()),
        ...(certificate !== undefined && key !== undefined && { certificate, key }),
      };
    },
    refused() {
      held = undefined;
    },
  };
}

function pluginOf(exec: Readonly<Record<string, unknown>>, dir: string, cluster: CredentialOptions["cluster"]): ExecPlugin {
  const command = textField(exec, "command") ?? "";
  const apiVersion = textField(exec, "apiVersion") ?? "";
  if (command === "") throw unusable("an exec plugin of the kubeconfig names no command");
  if (!/^client\.authentication\.k8s\.io\/v1(beta1)?$/.test(apiVersion))
    throw unusable(
      `the exec plugin ${command} speaks ${JSON.stringify(apiVersion)}; v1 and v1beta1 of client.authentication.k8s.io are known`,
    );
  if (exec.interactiveMode === "Always") throw unusable(`the exec plugin ${command} needs a terminal, and there is none`);
  const env = Array.isArray(exec.env) ? exec.env.filter(isPart) : [];
  return {
    command: command.includes("/") ? pathIn(dir, command) : command,
    args: Array.isArray(exec.args) ? exec.args.filter((arg) => typeof arg === "string") : [],
    env: Object.fromEntries(env.map((entry) => [String(entry.name), String(entry.value ?? "")])),
    apiVersion,
    installHint: textField(exec, "installHint"),
    cluster: exec.provideClusterInfo === true ? cluster : undefined,
  };
}

function impersonation(content: Readonly<Record<string, unknown>>): Readonly<Record<string, Secret<string>>> {
  const as = textField(content, "as");
  if (as === undefined) return {};
  const groups = content["as-groups"];
  if (Array.isArray(groups) && groups.length > 1) throw unusable("as-groups of a kubeconfig may name one group at most");
  const group: unknown = Array.isArray(groups) ? groups[0] : undefined;
  return {
    "impersonate-user": new Secret(as),
    ...(typeof group === "string" && { "impersonate-group": new Secret(group) }),
  };
}

const bearer = (token: string): KubeIdentity["headers"] => ({ authorization: new Secret(`Bearer ${token}`) });
const fixed = (headers: KubeIdentity["headers"]): KubeCredentials => ({ current: async () => ({ headers }), refused: () => {} });

/** A text that is read again when it may have changed. */
export interface Rereading {
  read(): Promise<string>;
  forget(): void;
}

/** A file that is replaced from time to time. Where it cannot be read for a moment, what it held before is good enough. */
export function rereading(path: string, clock: Clock): Rereading {
  let held: { readonly text: string; readonly at: number } | undefined;
  return {
    async read() {
      if (held !== undefined && clock.monotonic() - held.at < REREAD_MS) return held.text;
      try {
        held = { text: await readFile(path, "utf8"), at: clock.monotonic() };
      } catch (error) {
        if (held === undefined) throw unusable(`${path} cannot be read: ${messageOf(error)}`);
        held = { text: held.text, at: clock.monotonic() };
      }
      return held.text;
    },
    forget() {
      if (held !== undefined) held = { text: held.text, at: Number.NEGATIVE_INFINITY };
    },
  };
}
