import { existsSync, mkdirSync, statSync, writeFileSync } from "node:fs";
import { dirname, join, relative } from "node:path";
import type { ContainerPlan, Mount, ProgramPlan } from "./container-script.ts";
import { environmentOf, expand, type PodFacts } from "./environment.ts";
import type { Image } from "./image.ts";
import type { ContainerSpec } from "./pod.ts";
import { hostnameOf, podFiles } from "./pod-files.ts";
import type { Volumes } from "./volumes.ts";

export interface PlanInput {
  readonly facts: PodFacts;
  readonly container: ContainerSpec;
  readonly image: Image;
  readonly volumes: Volumes;
  readonly dnsAddress: string;
  /** Address of the API server among the Services. */
  readonly apiAddress: string;
}

/** All that a container's start depends on, from its Pod and its image. Throws `NotThereYet` where an object is missing. */
export async function planContainer(input: PlanInput): Promise<Omit<ContainerPlan, "layer">> {
  const { facts, container, image, volumes, dnsAddress } = input;
  const { pod, podAddress } = facts;
  const security = { ...pod.spec.securityContext, ...container.securityContext };
  return {
    hostname: hostnameOf(pod),
    texts: podFiles(pod, podAddress, dnsAddress),
    mounts: [...imageMounts(image), ...volumeMounts(container, volumes)],
    readOnlyRoot: security.readOnlyRootFilesystem === true,
    workingDir: container.workingDir ?? image.workingDir ?? "/",
    program: await planProgram(input),
  };
}

async function planProgram({ facts, container, image, apiAddress }: PlanInput): Promise<ProgramPlan> {
  const { spec } = facts.pod;
  const security = { ...spec.securityContext, ...container.securityContext };
  const env = await environmentOf(container, facts, {
    PATH: process.env.PATH ?? "",
    HOME: "/root",
    HOSTNAME: hostnameOf(facts.pod),
    KUBERNETES_SERVICE_HOST: apiAddress,
    KUBERNETES_SERVICE_PORT: "443",
    KUBERNETES_SERVICE_PORT_HTTPS: "443",
    ...image.env,
  });
  const args = container.args ?? (container.command === undefined ? (image.args ?? []) : []);
  const { fsGroup, supplementalGroups = [] } = spec.securityContext ?? {};
  return {
    words: [...(container.command ?? image.entrypoint), ...args].map((word) => expand(word, env)),
    env,
    user: security.runAsUser ?? image.user ?? 0,
    group: security.runAsGroup ?? image.group ?? 0,
    groups: [...(fsGroup === undefined ? [] : [fsGroup]), ...supplementalGroups],
    security,
  };
}

const imageMounts = ({ files = {} }: Image): readonly Mount[] => Object.entries(files).map(([to, from]) => ({ from, to, readOnly: true }));

function volumeMounts({ volumeMounts: mounts = [] }: ContainerSpec, volumes: Volumes): readonly Mount[] {
  // The outer ones first, or they would cover the inner ones.
  const inOrder = [...mounts].sort((a, b) => a.mountPath.length - b.mountPath.length);
  const made: Mount[] = [];
  for (const { name, mountPath, subPath = "", readOnly = false } of inOrder) {
    const from = join(volumes.path(name), subPath);
    if (!existsSync(from)) mkdirSync(from, { recursive: true });
    const mount = { from, to: mountPath, readOnly: readOnly || volumes.isReadOnly(name) };
    makePlace(mount, made);
    made.push(mount);
  }
  return made;
}

/** A volume inside another, which may be read-only to the container, needs a place there beforehand. */
function makePlace({ from, to }: Mount, outer: readonly Mount[]): void {
  const around = outer.findLast((one) => to.startsWith(`${one.to}/`));
  if (around === undefined) return;
  const place = join(around.from, relative(around.to, to));
  mkdirSync(statSync(from).isDirectory() ? place : dirname(place), { recursive: true });
  if (!existsSync(place)) writeFileSync(place, "");
}
