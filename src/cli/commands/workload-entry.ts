import { stat } from "node:fs/promises";
import { isIP } from "node:net";
import { join, resolve } from "node:path";
import { gzipSync } from "node:zlib";
import { systemClock } from "../../base/clock.ts";
import { EdgeError, messageOf } from "../../base/errors.ts";
import { writeWholeFile } from "../../base/whole-file.ts";
import { parseHostPort } from "../../settings/host-port.ts";
import { type Arguments, usageError } from "../arguments.ts";
import type { Command, Host } from "../command.ts";
import { ISTIOD_FLAGS } from "../istiod-client.ts";
import { findGroup } from "../join/find-group.ts";
import { groupProxyConfig } from "../join/group-proxy-config.ts";
import { ingressAddress } from "../join/ingress-address.ts";
import { BUNDLE_NAMES, type BundleFile, type JoinBundleInput, joinBundle } from "../join/join-bundle.ts";
import { type JoinedMesh, joinedMesh } from "../join/mesh-in-force.ts";
import { obtainJoinToken } from "../join/obtain-token.ts";
import { tarOf } from "../join/tar.ts";
import { CLUSTER_FLAGS, withCluster } from "../kube-cluster.ts";

const SECURE_PORT = 15_012;

export const workloadEntryCommand: Command = {
  name: "x workload entry configure",
  aliases: ["experimental workload entry configure"],
  about: "Write what a machine needs to join the mesh as a member of a WorkloadGroup",
  operands: "",
  flags: [
    { name: "file", short: "f", value: "FILE", about: "file with the WorkloadGroup (default: the one istiod has)" },
    { name: "name", value: "NAME", about: "name of the WorkloadGroup" },
    { name: "namespace", short: "n", value: "NAMESPACE", about: "its namespace" },
    {
      name: "serviceAccount",
      short: "s",
      value: "NAME",
      about: "service account, where the group's template names none (default: default)",
    },
    {
      name: "output",
      short: "o",
      value: "DIRECTORY|FILE.tar[.gz]",
      about: "where to write: Istio's five files, or one archive to unpack on the machine",
    },
    { name: "overwrite", about: "replace files that are there" },
    { name: "clusterID", value: "NAME", about: "cluster the machine belongs to (default: $CLUSTER_ID of istiod, then Kubernetes)" },
    { name: "autoregister", about: "the machine registers itself when it connects: no WorkloadEntry has to be written" },
    {
      name: "address",
      value: "HOST:PORT",
      about: "where the machine reaches istiod (default: this machine and the secure port of istiod)",
    },
    { name: "ingressIP", value: "ADDRESS", about: "the same as an address with port 15012, as Istio's flag" },
    {
      name: "ingressService",
      value: "NAME[.NAMESPACE]",
      about: "the same as where the cluster has this Service of a gateway from outside (--kubeconfig)",
    },
    { name: "internalIP", value: "ADDRESS", about: "address of the machine in its network (default: its first)" },
    { name: "externalIP", value: "ADDRESS", about: "address others reach it at where that is none of its own (behind NAT)" },
    { name: "capture-dns", value: "true|false", about: "the agent answers DNS of the machine (default: true)" },
    { name: "tokenDuration", value: "SECONDS", about: "how long the token in the bundle can be used (default: 3600)" },
    ...CLUSTER_FLAGS,
    ...ISTIOD_FLAGS,
  ],
  outputs: ["text"],
  notes: [
    "An archive is unpacked in the base directory of the machine (`tar -xf FILE -C $ISTIO_HOME`; / for packages), then istio-agent is started.",
    "The token in it is good for one machine: write a bundle for each. Keep it as you keep passwords until it is used.",
  ],
  async run(args, host) {
    const target = args.text("output");
    if (target === undefined) throw usageError("say where to write with -o");
    if (args.operands.length > 0) throw usageError(`${JSON.stringify(args.operands[0])} is not understood; everything is given by flags`);
    const path = resolve(host.cwd, target);
    const isArchive = /\.(tar|tar\.gz|tgz)$/.test(path);
    if (!args.has("overwrite")) await refuseToReplace(isArchive ? [path] : BUNDLE_NAMES.map((name) => join(path, name)));
    const files = await bundleOf(args, host);
    try {
      await (isArchive ? writeArchive(path, files) : writeFiles(path, files));
    } catch (error) {
      throw new EdgeError("file_unreadable", `the bundle cannot be written to ${path}: ${messageOf(error)}`);
    }
    return { data: { path, files: files.map(({ name }) => name) }, text: told(path, isArchive) };
  },
};

async function refuseToReplace(paths: readonly string[]): Promise<void> {
  for (const path of paths) {
    if ((await stat(path).catch(() => undefined)) === undefined) continue;
    throw new EdgeError("usage", `${path} is there already; --overwrite replaces it`);
  }
}

async function bundleOf(args: Arguments, host: Host): Promise<readonly BundleFile[]> {
  const joined = await joinedMesh(args, host);
  const { mesh } = joined;
  const group = await findGroup(args, host);
  const serviceAccount = serviceAccountOf(group.spec.template?.serviceAccount ?? "", args);
  const captureDns = args.choice("capture-dns", ["true", "false"]) !== "false";
  const proxy = groupProxyConfig(mesh, group);
  const address = machineAddress(args);
  const istiod = await istiodAddress(args, host, joined);
  const ttlMs = secondsOf(args.text("tokenDuration") ?? "3600") * 1_000;
  const { token, roots, trustDomain } = await obtainJoinToken({ namespace: group.namespace, serviceAccount, ttlMs }, args, host);
  if (roots === "") throw new EdgeError("not_found", "the roots of the mesh are not known here, and the machine could not verify istiod");
  return joinBundle({
    group,
    serviceAccount,
    token,
    roots,
    trustDomain,
    clusterId: args.text("clusterID") ?? joined.clusterId,
    meshId: mesh.defaultConfig?.meshId || trustDomain,
    istiod,
    istioNamespace: joined.namespace,
    autoregister: args.has("autoregister"),
    captureDns,
    address,
    proxy,
  });
}

function machineAddress(args: Arguments): JoinBundleInput["address"] {
  const [internal, external] = [args.text("internalIP"), args.text("externalIP")];
  if (internal !== undefined && external !== undefined) throw usageError("--internalIP and --externalIP exclude each other; give one");
  const ip = internal ?? external;
  if (ip !== undefined && isIP(ip) === 0)
    throw usageError(`--${internal === undefined ? "externalIP" : "internalIP"}: ${JSON.stringify(ip)} is no address`);
  return ip === undefined ? undefined : { ip, external: external !== undefined };
}

function serviceAccountOf(ofGroup: string, args: Arguments): string {
  const named = args.text("serviceAccount");
  if (named !== undefined && ofGroup !== "" && named !== ofGroup)
    throw usageError(`members of this group have the service account ${JSON.stringify(ofGroup)}`);
  return ofGroup || (named ?? "default");
}

function secondsOf(text: string): number {
  if (!/^\d{1,9}$/.test(text)) throw usageError(`--tokenDuration takes seconds, not ${JSON.stringify(text)}`);
  return Number(text);
}

async function istiodAddress(args: Arguments, host: Host, { namespace, secureGrpcAddr }: JoinedMesh): Promise<JoinBundleInput["istiod"]> {
  const ingress = args.text("ingressIP");
  const named = args.text("address");
  const service = args.text("ingressService");
  if ([ingress, named, service].filter((one) => one !== undefined).length > 1)
    throw usageError("--ingressIP, --ingressService and --address say the same; give one");
  if (service !== undefined) {
    const found = await withCluster(args, host, (client) => ingressAddress(client, service, namespace));
    return { host: found, port: SECURE_PORT };
  }
  if (ingress !== undefined) {
    if (isIP(ingress) === 0) throw usageError(`--ingressIP: ${JSON.stringify(ingress)} is no address`);
    return { host: ingress, port: SECURE_PORT };
  }
  const own = parseHostPort(named ?? secureGrpcAddr);
  if (typeof own === "string")
    throw usageError(named === undefined ? "istiod has no secure port; say with --address where it is" : `--address: ${own}`);
  const [first] = host.addresses;
  const reached = ["", "0.0.0.0", "::"].includes(own.host) ? first : own.host;
  if (reached === undefined) throw usageError("this machine has no address that others can reach; say with --address where istiod is");
  return { host: reached, port: own.port };
}

const writeArchive = (path: string, files: readonly BundleFile[]): Promise<void> => {
  const tar = tarOf(
    files.map(({ place, text, mode }) => ({ path: place, text, mode })),
    systemClock.now(),
  );
  return writeWholeFile(path, path.endsWith(".tar") ? tar : gzipSync(tar));
};

async function writeFiles(directory: string, files: readonly BundleFile[]): Promise<void> {
  for (const { name, text, mode } of files) await writeWholeFile(join(directory, name), text, mode);
}

function told(path: string, isArchive: boolean): string {
  return isArchive
    ? `${path} is written. On the machine: tar -xf ${path.split("/").at(-1)} -C $ISTIO_HOME, then start istio-agent. Its token is good for one machine.`
    : `${path} holds ${BUNDLE_NAMES.join(", ")}. Its token is good for one machine.`;
}
