import { readdir, readFile, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, it } from "vitest";
import type { ConfigRecord } from "../../src/debug/api-types.ts";
import { type Istiod, startIstiod } from "../support/istiod.ts";
import { eventually } from "../support/wait.ts";

const service = (name: string, port = 80): string => `apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: {name: ${name}}
spec:
  hosts: [${name}.example.com]
  ports: [{number: ${port}, name: http, protocol: HTTP}]
  resolution: STATIC
  endpoints: [{address: 10.1.2.3, labels: {app: ${name}}}]
`;

const fileOf = ({ home }: Istiod): string => join(home, "var/lib/istio/documents");
const inForce = async (istiod: Istiod): Promise<readonly ConfigRecord[]> =>
  (await (await istiod.debug("/debug/configz")).json()) as readonly ConfigRecord[];
const portOf = async (istiod: Istiod, name: string): Promise<unknown> =>
  (await inForce(istiod)).flatMap(({ metadata, spec }) =>
    metadata.name === name ? JSON.stringify(spec).match(/"number":(\d+)/)?.[1] : [],
  )[0];

interface Start {
  readonly documents: number;
  readonly known: number;
}

const starts = ({ log }: Istiod): readonly string[] =>
  log()
    .split("\n")
    .slice(0, -1)
    .filter((line) => line.includes("the first configuration is read"));

/** Documents of a start, and how many of them were not read again. What is logged may come a moment after the answer that it is ready. */
const startAt = (istiod: Istiod, index: number): Promise<Start> =>
  eventually(`start ${index} is logged`, () => {
    const line = starts(istiod)[index];
    return line === undefined ? undefined : (JSON.parse(line) as Start);
  });

/** Ends it at once, lets something happen meanwhile, and starts it again. */
async function restart(istiod: Istiod, meanwhile: () => Promise<void> = async () => {}): Promise<Start> {
  const { length } = starts(istiod);
  await istiod.stop("SIGKILL");
  await meanwhile();
  await istiod.start();
  return startAt(istiod, length);
}

it("documents that are as they were are not read again after a restart, and everything else is", async () => {
  const istiod = await startIstiod({
    files: {
      "conf/one.yaml": [service("a"), service("b")].join("---\n"),
      "conf/shop/two.yaml": service("c"),
      "conf/bad.yaml": service("d").replace("hosts", "hostts"),
    },
    env: { ISTIO_LOG_LEVEL: "debug", ISTIO_LOG_AS_JSON: "true" },
  });
  expect(await startAt(istiod, 0)).toMatchObject({ documents: 3, known: 0 });
  await eventually("the documents are kept", async () => (await stat(fileOf(istiod))).size > 0);
  expect((await stat(fileOf(istiod))).mode & 0o777).toBe(0o600);
  const before = await inForce(istiod);

  expect(await restart(istiod)).toMatchObject({ documents: 3, known: 3 });
  expect(await inForce(istiod)).toEqual(before);

  const changed = (): Promise<void> => istiod.write("conf/one.yaml", [service("b"), service("a", 81), service("e")].join("---\n"));
  expect(await restart(istiod, changed)).toMatchObject({ documents: 4, known: 2 });
  expect([await portOf(istiod, "a"), await portOf(istiod, "b"), await portOf(istiod, "e")]).toEqual(["81", "80", "80"]);

  // One that was not read is as good a last good version as any.
  await istiod.write("conf/shop/two.yaml", service("c").replace("resolution: STATIC", "resolution: NOTHING"));
  await eventually("the last good version is on disk", async () =>
    (await readdir(join(istiod.home, "var/lib/istio/last-good"))).some((name) => name.endsWith(".json")),
  );
  await restart(istiod);
  expect(await portOf(istiod, "c")).toBe("80");

  const damage = async (): Promise<void> => {
    const bytes = await readFile(fileOf(istiod));
    bytes[bytes.length >> 1] = (bytes[bytes.length >> 1] ?? 0) ^ 1;
    await writeFile(fileOf(istiod), bytes);
  };
  expect(await restart(istiod, damage)).toMatchObject({ documents: 3, known: 0 });
  expect(await portOf(istiod, "a")).toBe("81");
});
