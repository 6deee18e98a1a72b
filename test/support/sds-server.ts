import { onTestFinished } from "vitest";
import { prepareSocket } from "../../src/agent/local-socket.ts";
import { serveSecrets } from "../../src/agent/sds/sds-stream.ts";
import { systemClock } from "../../src/base/clock.ts";
import { silentLog } from "../../src/base/log.ts";
import { createGrpcServer, SECRETS_METHOD } from "../../src/wire/grpc-server.ts";

/** An SDS server on a Unix socket that has these secrets and no others; gives the names it was asked for. It ends with the test. */
export async function startSdsServer(socket: string, secrets: ReadonlyMap<string, Buffer>): Promise<{ readonly asked: string[] }> {
  const asked: string[] = [];
  const store = {
    owns: () => true,
    watch(name: string, changed: (secret: { bytes: Buffer; version: string }) => void) {
      asked.push(name);
      const bytes = secrets.get(name);
      if (bytes !== undefined) changed({ bytes, version: "1" });
      return () => {};
    },
  };
  const server = createGrpcServer({
    accept: (stream) => serveSecrets(stream, { store, log: silentLog, passOn: () => ({ message() {}, ended() {} }) }),
    discoveryPaths: { [SECRETS_METHOD]: "sotw" },
    healthy: () => true,
    clock: systemClock,
  });
  await prepareSocket(socket);
  await server.listen(`unix:${socket}`);
  onTestFinished(() => server.drain(0));
  return { asked };
}
