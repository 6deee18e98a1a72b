// Leads connections on a TCP port to a Unix socket: how programs in a network namespace of their own reach one outside. Run as
// `node socket-relay.ts PORT SOCKET`.
import { connect, createServer } from "node:net";

const [port = "", socket = ""] = process.argv.slice(2);

createServer((client) => {
  const upstream = connect(socket);
  client.on("error", () => upstream.destroy());
  upstream.on("error", () => client.destroy());
  client.pipe(upstream).pipe(client);
}).listen(Number(port), "127.0.0.1", () => process.stdout.write("ready\n"));
