import { basename, dirname, resolve } from "node:path";
import { EdgeError } from "../../base/errors.ts";
import { writeWholeFile } from "../../base/whole-file.ts";
import { defaultMeshConfig } from "../../config/mesh/defaults.ts";
import { judgeMesh } from "../../config/mesh/load-mesh.ts";
import { readMeshFilesIn } from "../../config/mesh/mesh-files.ts";
import { meshProblemsSentence } from "../../config/mesh/mesh-problems.ts";
import type { MeshConfig } from "../../gen/istio/mesh/v1alpha1/mesh_config_pb.js";
import { injectText } from "../../inject/inject-text.ts";
import type { InjectionSettings } from "../../inject/injection-request.ts";
import { readInjection, textOfConfigMap } from "../../inject/read-injection.ts";
import { FILE_LIMITS } from "../../sources/files/file-limits.ts";
import { readConfigFile, takeText } from "../../sources/files/read-config-file.ts";
import { type Arguments, usageError } from "../arguments.ts";
import type { Command, Host } from "../command.ts";

const STDIN = "-";

export const kubeInjectCommand: Command = {
  name: "kube-inject",
  aliases: [],
  about: "Add the sidecar to the workloads of a file, as the webhook would, without asking a cluster",
  operands: "",
  flags: [
    { name: "filename", short: "f", value: "FILE|-", about: "file with workloads; `-` is standard input" },
    { name: "output", short: "o", value: "FILE", about: "where to write the result (default: standard output)" },
    { name: "meshConfigFile", value: "FILE", about: "mesh.yaml or MeshConfig (default: Istio's defaults)" },
    { name: "injectConfigFile", value: "FILE", about: "configuration of the injector: templates, policy, selectors" },
    { name: "valuesFile", value: "FILE", about: "values of injection, under Istio's names" },
    { name: "namespace", short: "n", value: "NAMESPACE", about: "namespace of objects that name none (default: default)" },
    { name: "revision", short: "r", value: "NAME", about: "revision of the control plane that is to serve the proxies (default: default)" },
  ],
  outputs: ["text"],
  notes: [
    "Documents that make no pods come out as they are, comments included. A file of a ConfigMap is read as what is in it.",
    "The proxy is a native sidecar unless ENABLE_NATIVE_SIDECARS=false or a pod's annotation sidecar.istio.io/nativeSidecar says otherwise.",
    "Exit status 1: a workload could not be injected; then nothing is written.",
  ],
  async run(args, host) {
    const target = args.text("filename");
    if (target === undefined || args.operands.length > 0) throw usageError("name a file with -f, or - for standard input");
    const settings = await settingsOf(args, host);
    const text = target === STDIN ? await host.stdin() : await textOf(target, host);
    const context = { namespace: args.text("namespace") ?? "default", native: host.env.ENABLE_NATIVE_SIDECARS !== "false" };
    const result = injectText(text, settings, context);
    const [fault, ...more] = result.faults;
    if (fault !== undefined) throw new EdgeError("mesh_config_invalid", [fault, ...more].join("; "));
    for (const line of result.notes) host.err(`istioctl: ${line}\n`);
    const output = args.text("output");
    if (output === undefined) return { data: result.text, text: result.text };
    await writeWholeFile(resolve(host.cwd, output), result.text, 0o644);
    return { data: { file: output }, text: "" };
  },
};

async function settingsOf(args: Arguments, host: Host): Promise<InjectionSettings> {
  const file = async (flag: string): Promise<string | undefined> => {
    const name = args.text(flag);
    return name === undefined ? undefined : textOf(name, host);
  };
  const [config, values] = [await file("injectConfigFile"), await file("valuesFile")];
  const read = readInjection({
    ...(config !== undefined && { config: textOfConfigMap(config, "config") }),
    ...(values !== undefined && { values: textOfConfigMap(values, "values") }),
  });
  if ("faults" in read) throw new EdgeError("mesh_config_invalid", read.faults.join("; "));
  const revision = args.text("revision") ?? "default";
  const named = revision === "default" ? read.values : { ...read.values, revision };
  return {
    ...read,
    values: named,
    mesh: await meshOf(args.text("meshConfigFile"), host),
    revision,
    compliancePolicy: host.env.COMPLIANCE_POLICY ?? "",
  };
}

async function meshOf(name: string | undefined, host: Host): Promise<MeshConfig> {
  if (name === undefined) return defaultMeshConfig();
  const path = resolve(host.cwd, name);
  await textOf(name, host); // A file that is not there is no empty one.
  const load = judgeMesh(await readMeshFilesIn(dirname(path), basename(path)), { baseDir: dirname(path), env: {} });
  if (!load.ok) throw new EdgeError("mesh_config_invalid", meshProblemsSentence(load.problems));
  return load.config.mesh;
}

async function textOf(name: string, host: Host): Promise<string> {
  const reading = await readConfigFile(resolve(host.cwd, name), FILE_LIMITS);
  if (reading.type === "text") return takeText(reading);
  throw new EdgeError("file_unreadable", `${name} ${reading.type === "gone" ? "is no file, or is not there" : reading.fault}`);
}
