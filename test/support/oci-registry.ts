import { createHash } from "node:crypto";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { gzipSync } from "node:zlib";
import { onTestFinished } from "vitest";

/** A registry of images, as the OCI distribution specification has it, over plain HTTP. */
export interface OciRegistry {
  /** `host:port`. */
  readonly host: string;
  /** Puts an image under a tag; gives the digest of its manifest. */
  push(repository: string, tag: string, layer: Layer): string;
  /** Gives other bytes than it should for what is named by this digest. */
  falsify(digest: string, body: Buffer): void;
  /** What was asked for, in order. */
  readonly asked: string[];
  /** Makes every request fail with this status; 0 makes it work again. */
  fail(status: number): void;
}

export interface Layer {
  readonly mediaType: string;
  readonly content: Buffer;
}

export interface RegistryOptions {
  /** Whom it serves; everybody where nothing is said. Others get a token at the realm. */
  readonly login?: { readonly user: string; readonly password: string };
  /** Where it sends for a token; its own by default. */
  readonly realm?: string;
}

/** An image that is a file system with the module in it. */
export const imageLayer = (module: Buffer, name = "plugin.wasm"): Layer => ({
  mediaType: "application/vnd.oci.image.layer.v1.tar+gzip",
  content: gzipSync(tarOf(name, module)),
});

/** An artifact that is the module itself. */
export const artifactLayer = (content: Buffer): Layer => ({ mediaType: "application/vnd.module.wasm.content.layer.v1+wasm", content });

const TOKEN = "a-token-for-pulling";

export async function ociRegistry({ login, realm }: RegistryOptions = {}): Promise<OciRegistry> {
  const contents = new Map<string, { readonly type: string; readonly body: Buffer }>();
  const asked: string[] = [];
  let failure = 0;
  const isAllowed = ({ headers, url = "" }: IncomingMessage): boolean => {
    if (login === undefined) return true;
    const basic = `Basic ${Buffer.from(`${login.user}:${login.password}`).toString("base64")}`;
    return url.startsWith("/token") ? headers.authorization === basic : headers.authorization === `Bearer ${TOKEN}`;
  };
  const answer = (request: IncomingMessage, response: ServerResponse): void => {
    const path = request.url ?? "";
    asked.push(path);
    if (failure !== 0) return void response.writeHead(failure).end();
    if (!isAllowed(request)) {
      const challenge = `Bearer realm="${realm ?? `http://${host}/token`}",service="registry",scope="repository:x:pull"`;
      return void response.writeHead(401, { "www-authenticate": challenge }).end();
    }
    if (path.startsWith("/token")) return void response.end(JSON.stringify({ token: TOKEN }));
    const found = contents.get(path);
    if (found === undefined) return void response.writeHead(404).end();
    response.writeHead(200, { "content-type": found.type }).end(found.body);
  };
  const server = createServer(answer);
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  const host = `127.0.0.1:${(server.address() as AddressInfo).port}`;
  return {
    host,
    asked,
    fail(status) {
      failure = status;
    },
    falsify(digest, body) {
      for (const [path, { type }] of contents) if (path.endsWith(`/${digest}`)) contents.set(path, { type, body });
    },
    push(repository, tag, { mediaType, content }) {
      const manifest = Buffer.from(
        JSON.stringify({
          schemaVersion: 2,
          config: { mediaType: "application/vnd.oci.image.config.v1+json", digest: digestOf(Buffer.from("{}")), size: 2 },
          layers: [{ mediaType, digest: digestOf(content), size: content.length }],
        }),
      );
      const type = "application/vnd.oci.image.manifest.v1+json";
      for (const reference of [tag, digestOf(manifest)]) contents.set(`/v2/${repository}/manifests/${reference}`, { type, body: manifest });
      contents.set(`/v2/${repository}/blobs/${digestOf(content)}`, { type: mediaType, body: content });
      return digestOf(manifest);
    },
  };
}

/** How a registry names content. */
export const digestOf = (bytes: Buffer): string => `sha256:${createHash("sha256").update(bytes).digest("hex")}`;

/** An archive with one file. */
export function tarOf(name: string, content: Buffer): Buffer {
  const header = Buffer.alloc(512);
  header.write(name, 0);
  header.write("0000644\0", 100);
  header.write(`${content.length.toString(8).padStart(11, "0")}\0`, 124);
  header.write("        0", 148);
  header.write("ustar\0", 257);
  return Buffer.concat([header, content, Buffer.alloc((512 - (content.length % 512)) % 512), Buffer.alloc(1_024)]);
}
