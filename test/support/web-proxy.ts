import { createServer, request } from "node:http";
import { type AddressInfo, connect, type Socket } from "node:net";
import { onTestFinished } from "vitest";

/** A proxy as companies have it before the Internet. Every name it is asked for leads to one port of this machine. */
export interface WebProxy {
  /** With a login, which the proxy demands. */
  readonly url: string;
  /** What was asked for: `CONNECT host:port` or `GET url`. */
  readonly asked: readonly string[];
}

const LOGIN = "web:proxy";

export async function webProxy(leadsTo: number): Promise<WebProxy> {
  const asked: string[] = [];
  const isKnown = (header: string | undefined): boolean => header === `Basic ${Buffer.from(LOGIN).toString("base64")}`;
  const server = createServer((incoming, response) => {
    asked.push(`${incoming.method} ${incoming.url}`);
    if (!isKnown(incoming.headers["proxy-authorization"])) return void response.writeHead(407).end();
    const path = new URL(incoming.url ?? "").pathname;
    request({ host: "127.0.0.1", port: leadsTo, path }, (answer) => {
      response.writeHead(answer.statusCode ?? 500, answer.headers);
      answer.pipe(response);
    }).end();
  });
  server.on("connect", ({ url, headers }, client: Socket) => {
    asked.push(`CONNECT ${url}`);
    if (!isKnown(headers["proxy-authorization"])) return void client.end("HTTP/1.1 407 Proxy Authentication Required\r\n\r\n");
    const there = connect(leadsTo, "127.0.0.1", () => {
      client.write("HTTP/1.1 200 Connection established\r\n\r\n");
      there.pipe(client).pipe(there);
    });
    for (const socket of [client, there]) socket.on("error", () => socket.destroy());
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  onTestFinished(() => {
    server.close();
    server.closeAllConnections();
  });
  return { url: `http://${LOGIN}@127.0.0.1:${(server.address() as AddressInfo).port}`, asked };
}
