import assert from "node:assert/strict";
import { mkdir, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { describe, it } from "vitest";
import type { DocumentRecord } from "../../src/cli/validate/document-record.ts";
import { tempDir } from "../support/cleanup.ts";
import { istioctl } from "./cli-host.ts";

const GOOD = `apiVersion: networking.istio.io/v1
kind: DestinationRule
metadata: {name: reviews}
spec: {host: reviews}
`;
const BAD = `# a comment first

apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: {name: reviews}
spec:
  hosts: [reviews]
  http:
  - rout:
    - destination: {host: reviews}
`;

async function tree(files: Readonly<Record<string, string>>): Promise<string> {
  const dir = await tempDir();
  for (const [path, text] of Object.entries(files)) {
    await mkdir(dirname(join(dir, path)), { recursive: true });
    await writeFile(join(dir, path), text);
  }
  return dir;
}

async function records(words: readonly string[], cwd: string, stdin = ""): Promise<{ status: number; list: readonly DocumentRecord[] }> {
  const { status, out } = await istioctl(["validate", ...words, "-o", "json"], { cwd, stdin });
  return { status, list: JSON.parse(out) as readonly DocumentRecord[] };
}

describe("istioctl validate", () => {
  it("prints one array with a record for each document, and exits 1 for an invalid one", async () => {
    const cwd = await tree({ "conf/shop/a.yaml": `${GOOD}---\n${BAD}` });
    const { status, list } = await records(["-f", "conf"], cwd);
    assert.equal(status, 1);
    assert.deepEqual(list, [
      { file: "conf/shop/a.yaml", line: 1, kind: "DestinationRule", namespace: "shop", name: "reviews", valid: true, problems: [] },
      {
        file: "conf/shop/a.yaml",
        line: 8,
        kind: "VirtualService",
        namespace: "shop",
        name: "reviews",
        valid: false,
        problems: [
          { code: "schema.unknown-field", level: "error", path: "spec.http[0].rout", message: list[1]?.problems[0]?.message, line: 14 },
        ],
      },
    ]);
    assert.match(list[1]?.problems[0]?.message ?? "", /rout/);
  });

  it("prints file:line: level: field: message [code] for people", async () => {
    const cwd = await tree({ "a.yaml": BAD, "b.yaml": GOOD });
    const { status, out } = await istioctl(["validate", "a.yaml", "-f", "b.yaml"], { cwd });
    assert.equal(status, 1);
    const [first, last] = out.trim().split("\n");
    assert.match(first ?? "", /^a\.yaml:9: error: spec\.http\[0\]\.rout: .+ \[schema\.unknown-field\]$/);
    assert.equal(last, "2 documents checked, 1 invalid");
  });

  it("exits 0 where all is valid, warnings or not", async () => {
    const cwd = await tree({ "a.yaml": `${GOOD}---\napiVersion: apps/v1\nkind: Deployment\nmetadata: {name: x}\n` });
    const { status, list } = await records(["a.yaml"], cwd);
    assert.equal(status, 0);
    assert.deepEqual(
      list.map(({ valid, problems }) => [valid, problems.map(({ code }) => code)]),
      [
        [true, []],
        [true, ["kind.unknown"]],
      ],
    );
  });

  it("goes on after a document that cannot be read, and says where the fault is", async () => {
    const cwd = await tree({ "a.yaml": `${GOOD}---\na: [\n---\n${GOOD.replace("reviews}", "other}")}` });
    const { list } = await records(["a.yaml"], cwd);
    assert.deepEqual(
      list.map(({ valid, name }) => [valid, name]),
      [
        [true, "reviews"],
        [false, ""],
        [true, "other"],
      ],
    );
    assert.equal(list[1]?.problems[0]?.code, "document.unreadable");
  });

  it("reads standard input, items of a List, JSON, and a binary file without failing", async () => {
    const cwd = await tree({
      "bin.yaml": "a\0b",
      "a.json": JSON.stringify({
        apiVersion: "v1",
        kind: "List",
        items: [
          { apiVersion: "networking.istio.io/v1", kind: "DestinationRule", metadata: { name: "one" }, spec: { host: "a" } },
          { a: 1 },
        ],
      }),
    });
    const { list } = await records(["-", "a.json", "bin.yaml"], cwd, GOOD);
    assert.deepEqual(
      list.map(({ file, name, valid }) => [file, name, valid]),
      [
        ["-", "reviews", true],
        ["a.json", "one", true],
        ["a.json", "", false],
        ["bin.yaml", "", false],
      ],
    );
  });

  it("finds files as istiod does: recursively, without editors' leftovers, in order", async () => {
    const cwd = await tree({ "c/b/deep/x.yaml": GOOD, "c/a.yml": GOOD, "c/.hidden.yaml": BAD, "c/a.yaml~": BAD, "c/readme.txt": "no" });
    const { list } = await records(["c"], cwd);
    assert.deepEqual(
      list.map(({ file, namespace }) => [file, namespace]),
      [
        ["c/a.yml", "default"],
        ["c/b/deep/x.yaml", "b"],
      ],
    );
  });

  it("warns of a second document of the same object, which stays valid", async () => {
    const cwd = await tree({ "a.yaml": GOOD, "b.yaml": GOOD });
    const { status, list } = await records(["a.yaml", "b.yaml"], cwd);
    assert.equal(status, 0);
    assert.deepEqual(
      list.map(({ problems }) => problems.map(({ code, level }) => `${level} ${code}`)),
      [[], ["warning object.duplicate"]],
    );
    assert.match(list[1]?.problems[0]?.message ?? "", /^a\.yaml:1 /);
  });

  it("cannot check what is not there: one sentence, exit status 1", async () => {
    const { status, out, err } = await istioctl(["validate", "nothing.yaml"], { cwd: await tempDir() });
    assert.equal(status, 1);
    assert.equal(out, "");
    assert.equal(err, "istioctl: nothing.yaml cannot be read: it does not exist\n");
  });
});

describe("istioctl validate of mesh configuration", () => {
  it("judges mesh.yaml and its includes with file, line and field", async () => {
    const cwd = await tree({
      "etc/istio/mesh.yaml": "trustDomain: td\ninclude: [more.yaml]\n",
      "etc/istio/more.yaml": "accessLogFile: /dev/stdout\naccessLogFil: x\n",
      "etc/istio/conf/shop/a.yaml": GOOD,
    });
    for (const target of [".", "etc/istio"]) {
      const { status, list } = await records([target], cwd);
      assert.equal(status, 1);
      assert.deepEqual(
        list.map(({ file, kind, namespace, valid }) => [file, kind, namespace, valid]),
        [
          ["etc/istio/mesh.yaml", "MeshConfig", "", true],
          ["etc/istio/more.yaml", "MeshConfig", "", false],
          ["etc/istio/conf/shop/a.yaml", "DestinationRule", "shop", true],
        ],
      );
      assert.deepEqual(
        list[1]?.problems.map(({ path, line }) => [path, line]),
        [["accessLogFil", 2]],
      );
    }
  });

  it("judges a file of another name and place, and networks.yaml by itself", async () => {
    const cwd = await tree({
      "my-mesh.yaml": "trustDomain: 7\nlisten: {grpcAddr: nonsense}\n",
      "networks.yaml": "networks:\n  n1:\n    endpoint: []\n",
    });
    const mesh = await records(["my-mesh.yaml"], cwd);
    assert.deepEqual(
      mesh.list.map(({ file, kind, valid }) => [file, kind, valid]),
      [["my-mesh.yaml", "MeshConfig", false]],
    );
    assert.deepEqual(
      mesh.list[0]?.problems.map(({ line }) => line),
      [1, 2],
    );
    const networks = await records(["networks.yaml"], cwd);
    assert.deepEqual(
      networks.list.map(({ file, kind, valid }) => [file, kind, valid]),
      [["networks.yaml", "MeshNetworks", false]],
    );
  });

  it("judges mesh.yaml although networks.yaml beside it is broken", async () => {
    const cwd = await tree({ "mesh.yaml": "accessLogFil: x\n", "networks.yaml": "a: [" });
    const { list } = await records(["mesh.yaml", "networks.yaml"], cwd);
    assert.deepEqual(
      list.map(({ file, problems }) => [file, problems.map(({ code }) => code)]),
      [
        ["mesh.yaml", ["schema.unknown-field"]],
        ["networks.yaml", ["document.unreadable"]],
      ],
    );
  });

  it("leaves a file of configuration objects alone, whatever it is called", async () => {
    const cwd = await tree({ "mesh.yaml": GOOD });
    assert.deepEqual(
      (await records(["mesh.yaml"], cwd)).list.map(({ kind }) => kind),
      ["DestinationRule"],
    );
  });
});
