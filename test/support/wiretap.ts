import { connect, createServer } from "node:net";
import { onTestFinished } from "vitest";

/** What somebody on the network between two machines sees. */
export interface Wiretap {
  readonly port: number;
  /** Everything that passed, both ways. */
  heard(): Buffer;
}

/** Passes connections on and keeps a copy of what they carry. */
export async function startWiretap(at: string, to: { readonly address: string; readonly port: number }): Promise<Wiretap> {
  const heard: Buffer[] = [];
  const server = createServer((client) => {
    const upstream = connect(to.port, to.address);
    client.on("error", () => upstream.destroy()).on("data", (bytes: Buffer) => heard.push(bytes));
    upstream.on("error", () => client.destroy()).on("data", (bytes: Buffer) => heard.push(bytes));
    client.pipe(upstream).pipe(client);
  });
  await new Promise<void>((resolve) => server.listen(0, at, resolve));
  onTestFinished(() => void server.close());
  const address = server.address();
  return { port: typeof address === "object" && address !== null ? address.port : 0, heard: () => Buffer.concat(heard) };
}
