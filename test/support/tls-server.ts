import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { connect, createServer } from "node:tls";
import { onTestFinished } from "vitest";
import { tempDir } from "./cleanup.ts";

export interface KeyPair {
  readonly key: Buffer;
  readonly cert: Buffer;
}

/** A certificate that vouches for itself, made by openssl. */
export async function selfSigned(name: string): Promise<KeyPair> {
  const dir = await tempDir();
  const [key, cert] = [join(dir, "key.pem"), join(dir, "cert.pem")];
  const kind = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2"];
  const names = ["-subj", `/CN=${name}`, "-addext", `subjectAltName=DNS:${name}`];
  execFileSync("openssl", ["req", "-x509", ...kind, ...names, "-keyout", key, "-out", cert], { stdio: "ignore" });
  return { key: readFileSync(key), cert: readFileSync(cert) };
}

/** A TLS server that says its name to whoever has shaken hands; `asked` holds the names clients asked for. */
export async function tlsEcho(name: string): Promise<{ readonly port: number; readonly asked: string[] }> {
  const asked: string[] = [];
  const server = createServer(await selfSigned(name), (socket) => {
    asked.push(String(socket.servername));
    socket.on("error", () => {});
    socket.end(`${name}\n`);
  });
  server.on("tlsClientError", () => {});
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  onTestFinished(() => void server.close());
  return { port: (server.address() as AddressInfo).port, asked };
}

/** Shakes hands under a name and gives what the server says; undefined where nobody takes it. */
export function askTls(port: number, servername: string, host = "127.0.0.1"): Promise<string | undefined> {
  return new Promise((resolve) => {
    let heard = "";
    const socket = connect({ port, host, servername, rejectUnauthorized: false });
    socket.setTimeout(20_000, () => socket.destroy());
    socket.on("data", (chunk) => {
      heard += chunk.toString();
    });
    socket.on("error", () => resolve(undefined)).on("close", () => resolve(heard.trim() || undefined));
  });
}
