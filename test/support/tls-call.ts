import { type Agent, request } from "node:https";
import type { ConnectionOptions, TLSSocket } from "node:tls";

/** One HTTPS request as a client sends it. */
export interface TlsCall
  extends Pick<ConnectionOptions, "cert" | "key" | "ca" | "minVersion" | "maxVersion" | "ciphers" | "ALPNProtocols"> {
  /** Where, if not on the usual address of this machine. */
  readonly address?: string;
  readonly port: number;
  /** The name in the handshake, and the Host header. */
  readonly name: string;
  readonly agent?: Agent;
  readonly path?: string;
}

export interface TlsAnswer {
  readonly status: number;
  /** The server that answered, by the name it was given. */
  readonly by: string;
  readonly body: string;
  /** Names in the certificate that was shown, and its serial number. */
  readonly shown: string;
  readonly serial: string;
  readonly protocol: string;
  readonly cipher: string;
  /** The client's port: the same one means the same connection. */
  readonly from: number;
}

/** Makes one request over TLS; rejects where the handshake fails. Whose certificate is shown is for the caller to look at, unless `ca` is given. */
export function tlsCall({ address = "127.0.0.1", port, name, agent, path = "/", ...tls }: TlsCall): Promise<TlsAnswer> {
  return new Promise((resolve, reject) => {
    const sent = request(
      {
        host: address,
        port,
        path,
        servername: name,
        headers: { host: name },
        agent: agent ?? false,
        timeout: 30_000,
        rejectUnauthorized: tls.ca !== undefined,
        ...tls,
      },
      (response) => {
        const socket = response.socket as TLSSocket;
        const certificate = socket.getPeerX509Certificate();
        const seen = {
          shown: certificate?.subjectAltName ?? "",
          serial: certificate?.serialNumber ?? "",
          protocol: socket.getProtocol() ?? "",
          cipher: socket.getCipher().standardName,
          from: socket.localPort ?? 0,
        };
        let body = "";
        response.setEncoding("utf8").on("data", (text: string) => {
          body += text;
        });
        response
          .on("error", reject)
          .on("end", () => resolve({ status: response.statusCode ?? 0, by: String(response.headers["x-served-by"] ?? ""), body, ...seen }));
      },
    );
    sent.on("timeout", () => sent.destroy(new Error("no answer in time")));
    sent.on("error", reject).end();
  });
}

/** Whether a server turns a client away, at the handshake or right after it. */
export const isTurnedAway = (call: TlsCall): Promise<boolean> =>
  tlsCall(call).then(
    () => false,
    () => true,
  );
