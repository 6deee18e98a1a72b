import { mkdirSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import { systemClock } from "../src/base/clock.ts";
import { Fleet, reachesAll } from "./fleet.ts";
import { replaceFile, routeEdit, type SceneShape, sceneProxies, writeScene } from "./scene.ts";
import { secureFlags, tokenFiles } from "./secure-flags.ts";
import type { MeasuredServer } from "./server.ts";
import type { TokenIssuer } from "./token-issuer.ts";
import type { LoadClient } from "./xdsload.ts";

/** The proxies of a scene, over TLS with tokens, and a change of routes that goes to all of them. */
export interface PushedProxies {
  /** Writes the scene, before the server starts. */
  write(): Promise<void>;
  /** Resolves when all have their configuration. */
  connect(server: MeasuredServer): Promise<void>;
  /** Makes the change, about so long after it is asked for; resolves with how long it took to the last of them. */
  change(afterMs: number): Promise<number>;
  close(): void;
}

export interface Scene {
  readonly home: string;
  readonly shape: SceneShape;
  readonly issuer: TokenIssuer;
}

/** By a client of our own. */
export function ownProxies({ home, shape, issuer }: Scene): PushedProxies {
  let fleet: Fleet | undefined;
  return {
    write: () => writeScene(home, shape),
    async connect(server) {
      fleet = new Fleet(server.securePort, { secure: await issuer.callsTo(home) });
      await fleet.connect(sceneProxies(shape));
      await fleet.quiet();
    },
    async change(afterMs) {
      const edit = routeEdit(1);
      const apply = await replaceFile(home, edit);
      await systemClock.sleep(afterMs);
      return Math.max(...((await fleet?.observe(apply, reachesAll(edit)))?.times ?? []));
    },
    close: () => fleet?.close(),
  };
}

/** By the load client, which takes less of the processor that it shares with the server. It makes the change by itself, five seconds after all are there. */
export function loadProxies(client: LoadClient, { home, shape, issuer }: Scene): PushedProxies {
  const directory = join(home, "scene");
  let changed: Promise<number> = Promise.resolve(0);
  return {
    async write() {
      for (const one of [directory, join(home, "etc/istio")]) mkdirSync(one, { recursive: true });
      client.generate(directory, shape);
      symlinkSync(join(directory, "config"), join(home, "etc/istio/conf"));
    },
    async connect(server) {
      const [roots, token] = [join(home, "etc/cacerts/root-cert.pem"), tokenFiles(home, issuer, [shape])];
      const initialised = Promise.withResolvers<void>();
      const lines = client.run(
        "run",
        [
          ...secureFlags(server, { roots, token }),
          ...["--gen", directory, "--pid", String(server.pid)],
          ...["--proxies", String(shape.proxies), "--classes", String(shape.classes), "--mode", "init,idle,route-change:1"],
        ],
        () => initialised.resolve(),
      );
      changed = lines.then((all) => all.find(({ mode }) => mode === "route-change")?.median_last_ms ?? 0);
      await Promise.race([initialised.promise, lines]);
    },
    change: () => changed,
    close: () => {},
  };
}
