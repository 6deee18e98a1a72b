import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { expect, it, onTestFinished } from "vitest";
import { tempDir } from "../../test/support/cleanup.ts";
import { eventually } from "../../test/support/wait.ts";
import { systemClock } from "../base/clock.ts";
import { silentLog } from "../base/log.ts";
import type { ConfigSource, SourceEvent } from "../config/object.ts";
import type { ConfigStore } from "../config/store/store-types.ts";
import { fileSource } from "../sources/files/file-source.ts";
import { createRunningSources } from "./running-sources.ts";

setFlagsFromString("--expose-gc");
const collect = runInNewContext("gc") as () => void;

it("nothing that a source has told of is held while the next is waited for", async () => {
  const dir = await tempDir("sources-");
  const write = (host: string): void =>
    writeFileSync(
      join(dir, "one.yaml"),
      `{apiVersion: networking.istio.io/v1, kind: ServiceEntry, metadata: {name: one}, spec: {hosts: [${host}]}}`,
    );
  write("a.example");
  const told: WeakRef<object>[] = [];
  const stage = async (_: string, event: SourceEvent): Promise<void> => {
    const objects = event.type === "reset" ? event.objects : event.scopes.flatMap((scope) => scope.objects);
    for await (const object of objects) told.push(new WeakRef(object));
  };
  const store = { stage, setSources: () => {} } as unknown as ConfigStore;
  const quiet: ConfigSource = { name: "own", async *events() {} };
  const sources = createRunningSources({
    make: () => fileSource(dir, { clock: systemClock, log: silentLog }),
    own: quiet,
    store,
    log: silentLog,
    staged: () => {},
  });
  onTestFinished(() => sources.stop());
  sources.set([{ scheme: "fs", target: dir, address: `fs://${dir}`, assumed: false }]);
  const isForgotten = (event: WeakRef<object> | undefined): boolean => {
    collect();
    return event !== undefined && event.deref() === undefined;
  };
  await eventually("all has been told, and is forgotten", () => isForgotten(told[0]));
  write("b.example");
  await eventually("the change has been told, and is forgotten", () => isForgotten(told[1]));
  expect(told).toHaveLength(2);
});
