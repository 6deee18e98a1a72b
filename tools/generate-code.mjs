// Generates src/gen from Envoy's API (npm package @grpc/grpc-js-xds) and from proto/. Plain JavaScript: it runs before anything else exists.
import { execFileSync } from "node:child_process";
import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";

/** Files whose content decides what is generated: set-up generates again only when one of them changed. */
export const GENERATOR_INPUTS = ["tools/generate-code.mjs", "tools/file-desc.mjs", "proto", "package-lock.json"];

/** Writes `src/gen` whole or not at all: code is generated beside it and renamed into place. */
export function generateCode(root) {
  const work = join(root, ".cache/gen");
  rmSync(work, { recursive: true, force: true });
  mkdirSync(join(work, "proto"), { recursive: true });
  copyEnvoyProtos(root, join(work, "proto"));
  applyOverlay(root, join(work, "proto"));
  for (const own of ["istio", "opentelemetry", "envoy", "grpc"])
    cpSync(join(root, "proto", own), join(work, "proto", own), { recursive: true });
  writeFileSync(join(work, "buf.yaml"), "version: v2\nmodules:\n  - path: proto\n");
  writeFileSync(join(work, "buf.gen.yaml"), bufTemplate());
  const paths = rootPaths(root, join(work, "proto")).flatMap((path) => ["--path", join("proto", path)]);
  const bin = join(root, "node_modules/.bin");
  execFileSync(join(bin, "buf"), ["generate", "--include-imports", ...paths], {
    cwd: work,
    stdio: ["ignore", "inherit", "inherit"],
    env: { ...process.env, PATH: `${bin}:${process.env.PATH}` },
  });
  writeFileDescriptor(root, join(work, "out"));
  writeFileIndex(join(work, "out"));
  const target = join(root, "src/gen");
  rmSync(target, { recursive: true, force: true });
  mkdirSync(dirname(target), { recursive: true });
  renameSync(join(work, "out"), target);
}

/** What of the library's is ours in generated code: see the file. */
const FILE_DESC = { from: "tools/file-desc.mjs", to: "file-desc.js", names: ["fileDesc", "tsEnum"] };

/** Has generated code take these names from `file-desc.js`, which it writes beside it. */
function writeFileDescriptor(root, out) {
  cpSync(join(root, FILE_DESC.from), join(out, FILE_DESC.to));
  for (const path of readdirSync(out, { recursive: true }).filter((name) => name.endsWith("_pb.js"))) {
    const file = join(out, path);
    const text = readFileSync(file, "utf8");
    const imported = /^import \{ ([^}]*) \} from "@bufbuild\/protobuf\/codegenv2";$/m.exec(text);
    if (imported === null) continue;
    const names = imported[1].split(", ");
    const ours = names.filter((name) => FILE_DESC.names.includes(name));
    const theirs = names.filter((name) => !FILE_DESC.names.includes(name));
    const up = path.split(/[\\/]/).length - 1;
    const importOf = (some, from) => (some.length === 0 ? [] : [`import { ${some.join(", ")} } from "${from}";`]);
    const lines = [
      ...importOf(theirs, "@bufbuild/protobuf/codegenv2"),
      ...importOf(ours, `${up === 0 ? "./" : "../".repeat(up)}${FILE_DESC.to}`),
    ];
    writeFileSync(file, text.replace(imported[0], lines.join("\n")));
  }
}

/** `all-files.js` lists every generated file, so that dumps as JSON can resolve any message inside an `Any`. */
export function writeFileIndex(out) {
  const paths = readdirSync(out, { recursive: true })
    .map((path) => path.replaceAll("\\", "/"))
    .filter((path) => path.endsWith("_pb.js"))
    .sort();
  const exportOf = (path) => /export const (file_[a-z0-9_]+)\b/.exec(readFileSync(join(out, path), "utf8"))?.[1];
  const files = paths.map((path) => ({ path, name: exportOf(path) })).filter((file) => file.name !== undefined);
  const lines = [
    ...files.map((file) => `import { ${file.name} } from "./${file.path}";`),
    "",
    "export const allFiles = [",
    ...files.map((file) => `  ${file.name},`),
    "];",
    "",
  ];
  writeFileSync(join(out, "all-files.js"), lines.join("\n"));
  writeFileSync(
    join(out, "all-files.d.ts"),
    'import type { DescFile } from "@bufbuild/protobuf";\n\nexport declare const allFiles: readonly DescFile[];\n',
  );
}

function bufTemplate() {
  return [
    "version: v2",
    "plugins:",
    "  - local: protoc-gen-es",
    "    out: out",
    "    include_imports: true",
    "    strategy: all",
    "    opt: [target=js+dts, import_extension=js]",
    "",
  ].join("\n");
}

/** The descriptors are spread over four roots in the package; the validation rules lack one option that the protos use. */
function copyEnvoyProtos(root, out) {
  const deps = join(root, "node_modules/@grpc/grpc-js-xds/deps");
  for (const part of [
    "envoy-api/envoy",
    "xds/xds",
    "xds/udpa",
    "protoc-gen-validate/validate",
    "googleapis/google/rpc",
    "googleapis/google/api",
  ]) {
    const from = join(deps, part);
    const name = part.split("/").slice(1).join("/");
    if (existsSync(from)) cpSync(from, join(out, name), { recursive: true, filter: (path) => !/\.(go|py|bazel|md)$/.test(path) });
  }
  const rules = join(out, "validate/validate.proto");
  const text = readFileSync(rules, "utf8");
  if (!/message StringRules \{[^}]*ignore_empty/s.test(text)) {
    writeFileSync(rules, text.replace("message StringRules {", "message StringRules {\n  optional bool ignore_empty = 26;"));
  }
}

function applyOverlay(root, out) {
  for (const line of meaningfulLines(join(root, "proto/envoy-overlay.txt"))) {
    const [file, message, ...field] = line.split(" ");
    const path = join(out, file);
    const text = readFileSync(path, "utf8");
    const declaration = field.join(" ");
    if (message === "import") {
      if (!text.includes(`import "${declaration}";`)) writeFileSync(path, text.replace(/^import /m, `import "${declaration}";\nimport `));
      continue;
    }
    if (message === "enum") {
      writeFileSync(path, withEnumValue(text, field[0], field.slice(1).join(" ")));
      continue;
    }
    const opening = `message ${message} {`;
    if (!text.includes(opening)) throw new Error(`proto/envoy-overlay.txt: ${file} has no message ${message}`);
    if (!text.includes(` ${declaration}`)) writeFileSync(path, text.replace(opening, `${opening}\n  ${declaration}`));
  }
}

/** The zero of an enum must stay its first value, so others go to its end. */
function withEnumValue(text, name, value) {
  const start = text.indexOf(`enum ${name} {`);
  const end = text.indexOf("}", start);
  if (start < 0) throw new Error(`proto/envoy-overlay.txt: there is no enum ${name}`);
  return text.slice(start, end).includes(` ${value}`) ? text : `${text.slice(0, end)}  ${value}\n${text.slice(end)}`;
}

function rootPaths(root, out) {
  const roots = meaningfulLines(join(root, "proto/envoy-roots.txt"));
  for (const path of roots) if (!existsSync(join(out, path))) throw new Error(`proto/envoy-roots.txt: ${path} is not in @grpc/grpc-js-xds`);
  return [...roots, "istio", "grpc"];
}

function meaningfulLines(file) {
  return readFileSync(file, "utf8")
    .split("\n")
    .filter((line) => line !== "" && !line.startsWith("#"));
}
