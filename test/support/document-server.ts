import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { onTestFinished } from "vitest";

/** A server whose documents a test may replace at any time: a path's text, a status, or a function that answers. */
export interface DocumentServer {
  readonly port: number;
  readonly origin: string;
  readonly documents: Map<string, string | Buffer | number | ((request: IncomingMessage, response: ServerResponse) => void)>;
  /** Paths asked for, in order. */
  readonly asked: string[];
}

/** Starts one on loopback; what it does not have is not found. */
export async function documentServer(): Promise<DocumentServer> {
  const documents: DocumentServer["documents"] = new Map();
  const asked: string[] = [];
  const server = createServer((request, response) => {
    const path = request.url ?? "";
    asked.push(path);
    const document = documents.get(path) ?? 404;
    if (typeof document === "function") document(request, response);
    else if (typeof document === "number") response.writeHead(document).end();
    else response.end(document);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  const { port } = server.address() as AddressInfo;
  return { port, origin: `http://127.0.0.1:${port}`, documents, asked };
}
