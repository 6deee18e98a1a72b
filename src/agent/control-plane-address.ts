import { isIP } from "node:net";
import { hostPort } from "../base/address.ts";
import { EdgeError } from "../base/errors.ts";

/** Where a control plane or CA answers, and how. */
export interface Target {
  readonly host: string;
  readonly port: number;
  /** False only where plaintext was asked for. */
  readonly tls: boolean;
  /** Name that its certificate must be for. */
  readonly serverName: string;
}

export interface AddressRules {
  /** In a pod a bare name is a Service. */
  readonly inPod: boolean;
  /** Overrides the name that is verified. */
  readonly serverName?: string;
  /** No TLS, whatever the port. */
  readonly plaintext?: boolean;
}

const SECURE_PORT = 15_012;
const PLAINTEXT_PORT = 15_010;
/** Behind it stands something with a certificate that platforms trust. */
export const PUBLIC_PORT = 443;
const DEFAULT_SERVER_NAME = "istiod.istio-system.svc";

/** Reads a list of addresses separated by commas. Throws `EdgeError` for one that is none. */
export const parseTargets = (text: string, rules: AddressRules): readonly Target[] =>
  text
    .split(",")
    .map((address) => address.trim())
    .filter((address) => address !== "")
    .map((address) => parseTarget(address, rules));

function parseTarget(address: string, rules: AddressRules): Target {
  const isUrl = /^https:\/\//.test(address);
  const bare = address.replace(/^https:\/\//, "").replace(/\/$/, "");
  const match = /^(?:\[([0-9a-fA-F:.]+)\]|([A-Za-z0-9._-]+))(?::(\d{1,5}))?$/.exec(bare);
  const [, v6, name = "", portText] = match ?? [];
  const port = portText === undefined ? (isUrl ? PUBLIC_PORT : SECURE_PORT) : Number(portText);
  if (match === null || port === 0 || port > 65_535)
    throw new EdgeError("usage", `${JSON.stringify(address)} is no address of a control plane`, {
      hint: "ISTIO_ADDRESS, PILOT_ADDRESS and CA_ADDR take host:port, or a name alone",
    });
  const host = v6 ?? (portText === undefined && !isUrl && rules.inPod ? serviceName(name) : name);
  return {
    host,
    port,
    tls: rules.plaintext !== true && port !== PLAINTEXT_PORT,
    serverName: rules.serverName || (isIP(host) === 0 ? host : DEFAULT_SERVER_NAME),
  };
}

/** `istiod.istio-system` is short for a Service. */
const serviceName = (name: string): string => (isIP(name) !== 0 || /\.svc(\.|$)/.test(name) ? name : `${name}.svc`);

/** As messages show it. */
export const addressOf = ({ host, port }: Pick<Target, "host" | "port">): string => hostPort(host, port);
