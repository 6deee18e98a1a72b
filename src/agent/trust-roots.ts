import { readFile } from "node:fs/promises";
import { isAbsolute, join } from "node:path";
import { EdgeError } from "../base/errors.ts";
import { PUBLIC_PORT, type Target } from "./control-plane-address.ts";
import { unreadableFile } from "./unreadable-file.ts";

/** Roots that a server is verified with, and where they come from. */
export interface TrustRoots {
  /** PEM; undefined means those of the platform. */
  readonly pem: string | undefined;
  readonly from: string;
}

export interface RootsQuery {
  readonly baseDir: string;
  /** A file named by the user, `SYSTEM`, or nothing. */
  readonly named: string;
  readonly target: Pick<Target, "port">;
  /** Roots of the mesh learned with the workload's certificate; empty where there is none yet. */
  readonly learned: string;
}

/** Where the roots of the mesh lie: what injection mounts, what joins a machine, what an istiod in the same directory made. */
const MESH_ROOTS = ["var/run/secrets/istio/root-cert.pem", "etc/certs/root-cert.pem", "etc/cacerts/root-cert.pem"];
const KUBELET_ROOTS = "var/run/secrets/kubernetes.io/serviceaccount/ca.crt";
const PLATFORM = "SYSTEM";

/**
 * Finds the roots for one server: a file that is named, the platform's for port 443, the mesh's (from a file, and those learned since, because the
 * file may be older), else the cluster's. Read anew for each connection, so that replaced files count at once.
 */
export async function findTrustRoots({ baseDir, named, target, learned }: RootsQuery): Promise<TrustRoots> {
  if (named === PLATFORM) return { pem: undefined, from: "the platform" };
  if (named !== "") return readNamed(isAbsolute(named) ? named : join(baseDir, named));
  if (target.port === PUBLIC_PORT) return { pem: undefined, from: "the platform" };
  for (const file of MESH_ROOTS) {
    const pem = await readIfThere(join(baseDir, file));
    if (pem !== undefined) return { pem: `${pem}\n${learned}`, from: join(baseDir, file) };
  }
  if (learned !== "") return { pem: learned, from: "the mesh" };
  const pem = await readIfThere(join(baseDir, KUBELET_ROOTS));
  if (pem !== undefined) return { pem, from: join(baseDir, KUBELET_ROOTS) };
  const hidden = await unreadableFile([...MESH_ROOTS, KUBELET_ROOTS].map((one) => join(baseDir, one)));
  if (hidden !== undefined) throw new EdgeError("file_unreadable", hidden, { hint: "make it readable for this user, who runs the agent" });
  throw new EdgeError("file_unreadable", "there is no root certificate to verify the control plane with", {
    hint: `put the root of the mesh into ${join(baseDir, "etc/certs/root-cert.pem")}, or name a file in XDS_ROOT_CA and CA_ROOT_CA`,
  });
}

async function readNamed(file: string): Promise<TrustRoots> {
  const pem = await readIfThere(file);
  if (pem !== undefined) return { pem, from: file };
  throw new EdgeError("file_unreadable", `the root certificates in ${file} cannot be read`, {
    hint: "XDS_ROOT_CA and CA_ROOT_CA name a PEM file, or SYSTEM",
  });
}

const readIfThere = (file: string): Promise<string | undefined> =>
  readFile(file, "utf8").then(
    (text) => (text.includes("BEGIN CERTIFICATE") ? text : undefined),
    () => undefined,
  );
