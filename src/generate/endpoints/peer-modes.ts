import { type Labels, matchesLabels } from "../../base/labels.ts";
import type { ConfigObject } from "../../config/object.ts";
import type { Query } from "../../engine/index.ts";
import {
  PeerAuthentication_MutualTLS_Mode as Mode,
  type PeerAuthentication,
} from "../../gen/istio/security/v1beta1/peer_authentication_pb.js";
import type { GenerateContext } from "../context.ts";

/** Where servers of a namespace have switched mutual TLS off: all a client needs to know of PeerAuthentication. */
export interface PeerModes {
  /** Policies that select workloads, oldest first. */
  readonly selecting: readonly WorkloadMode[];
  /** What holds for all other workloads of the namespace. */
  readonly disabled: boolean;
}

interface WorkloadMode {
  readonly selector: Labels;
  /** undefined = as the namespace has it. */
  readonly disabled: boolean | undefined;
  readonly ports: Readonly<Record<string, boolean>>;
}

/** Whether a workload refuses mutual TLS on a port: the port's setting first, then the workload's, the namespace's, the mesh's. */
export function refusesMutualTls(modes: PeerModes, labels: Labels, port: number): boolean {
  const own = modes.selecting.find(({ selector }) => matchesLabels(selector, labels));
  return own?.ports[String(port)] ?? own?.disabled ?? modes.disabled;
}

/** Defines the modes of each namespace (Istio's reference of the PeerAuthentication kind). */
export function definePeerModes(ctx: Pick<GenerateContext, "engine" | "inputs">): Query<string, PeerModes> {
  const policiesIn = (namespace: string): readonly ConfigObject<PeerAuthentication>[] =>
    (ctx.inputs.objects.list("kindNamespace", `PeerAuthentication/${namespace}`) as readonly ConfigObject<PeerAuthentication>[]).toSorted(
      (a, b) => a.createdAt - b.createdAt || (a.name < b.name ? -1 : 1),
    );
  return ctx.engine.query<string, PeerModes>({
    name: "peerModes",
    compute: (namespace) => {
      const policies = policiesIn(namespace);
      const selects = ({ spec }: ConfigObject<PeerAuthentication>): boolean => Object.keys(spec.selector?.matchLabels ?? {}).length > 0;
      const root = ctx.inputs.mesh.get("mesh")?.rootNamespace || "istio-system";
      const wide = (of: readonly ConfigObject<PeerAuthentication>[]): boolean | undefined =>
        disabledBy(of.find((policy) => !selects(policy))?.spec.mtls?.mode);
      // As for servers: what selects workloads in the root namespace counts for nobody.
      const selecting = namespace === root ? [] : policies.filter(selects).map(workloadMode);
      return { selecting, disabled: wide(policies) ?? wide(policiesIn(root)) ?? false };
    },
  });
}

function workloadMode({ spec }: ConfigObject<PeerAuthentication>): WorkloadMode {
  const ports = Object.entries(spec.portLevelMtls).flatMap(([port, { mode }]) => {
    const disabled = disabledBy(mode);
    return disabled === undefined ? [] : [[port, disabled]];
  });
  return { selector: spec.selector?.matchLabels ?? {}, disabled: disabledBy(spec.mtls?.mode), ports: Object.fromEntries(ports) };
}

const disabledBy = (mode: Mode | undefined): boolean | undefined =>
  mode === undefined || mode === Mode.UNSET ? undefined : mode === Mode.DISABLE;
