import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, it, onTestFinished } from "vitest";
import { tempDir } from "../../test/support/cleanup.ts";
import { eventually } from "../../test/support/wait.ts";
import { systemClock } from "../base/clock.ts";
import { silentLog } from "../base/log.ts";
import type { KubeClient } from "../kube/kube-client.ts";
import { KubeError } from "../kube/kube-error.ts";
import type { ListHead } from "../kube/list-reader.ts";
import { ClusterMesh } from "./cluster-mesh.ts";

/** A server that answers for each ConfigMap when the test says so. */
function server() {
  const gates = new Map(["shared", "istio"].map((name) => [name, Promise.withResolvers<string | KubeError>()]));
  const client: Pick<KubeClient, "listEach" | "watch" | "server"> = {
    server: "https://test",
    async listEach(_type, { fieldSelector }, take): Promise<ListHead> {
      const name = fieldSelector?.replace("metadata.name=", "") ?? "";
      const said = await gates.get(name)?.promise;
      if (said instanceof KubeError) throw said;
      take({ metadata: { name, namespace: "istio-system", resourceVersion: "1" }, data: { mesh: said } });
      return { continue: "", resourceVersion: "1" };
    },
    async *watch(_type, { signal }) {
      yield [];
      await new Promise((_, reject) => signal.addEventListener("abort", () => reject(signal.reason), { once: true }));
    },
  };
  return { client, answer: (name: string, said: string | KubeError) => gates.get(name)?.resolve(said) };
}

async function followed() {
  const { client, answer } = server();
  const file = join(await tempDir("cluster-mesh-"), "mesh.json");
  const stop = new AbortController();
  onTestFinished(() => stop.abort());
  const options = { client, namespace: "istio-system", revision: "", shared: "shared", clock: systemClock, log: silentLog, file };
  const mesh = new ClusterMesh(options);
  const seen: unknown[] = [];
  mesh.follow(() => void seen.push(mesh.current));
  void mesh.run(stop.signal);
  return { mesh, answer, file, seen };
}

const forbidden = new KubeError({ status: 403, reason: "Forbidden", message: "no" });
const OWN = { title: "ConfigMap istio-system/istio", mesh: "a: 1" };
const SHARED = { title: "ConfigMap istio-system/shared", mesh: "b: 2" };

for (const first of ["shared", "istio"] as const)
  it(`says nothing of a mesh of which only ${first} is known`, async () => {
    const { mesh, answer, file, seen } = await followed();
    answer(first, first === "shared" ? "b: 2" : "a: 1");
    await mesh.ready(50);
    expect([mesh.current, seen]).toEqual([undefined, []]);
    answer("shared", "b: 2");
    answer("istio", "a: 1");
    await mesh.ready(undefined);
    expect([mesh.current, seen]).toEqual([{ ...OWN, under: SHARED }, [{ ...OWN, under: SHARED }]]);
    await eventually("it is kept", async () => (await readFile(file, "utf8")).includes("b: 2"));
  });

for (const first of ["shared", "istio"] as const)
  it(`takes what it may read where the other may not be read, ${first} first`, async () => {
    const { mesh, answer } = await followed();
    answer(first, first === "shared" ? forbidden : "a: 1");
    await mesh.ready(50);
    answer("shared", forbidden);
    answer("istio", "a: 1");
    await mesh.ready(undefined);
    expect(mesh.current).toEqual(OWN);
  });
