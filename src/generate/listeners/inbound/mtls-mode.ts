import { type Labels, matchesLabels } from "../../../base/labels.ts";
import type { ConfigObject } from "../../../config/object.ts";
import type { Engine, Query } from "../../../engine/index.ts";
import type { MtlsMode } from "../../../envoy/listener/inbound-chains.ts";
import {
  PeerAuthentication_MutualTLS_Mode as Mode,
  type PeerAuthentication,
} from "../../../gen/istio/security/v1beta1/peer_authentication_pb.js";
import type { GenerateContext } from "../../context.ts";
import { byPrecedence } from "../../lookups/precedence.ts";

/** What a workload demands of its clients. */
export interface MtlsModes {
  readonly mode: MtlsMode;
  /** Ports of the workload with a mode of their own, sorted. */
  readonly ports: readonly { readonly port: number; readonly mode: MtlsMode }[];
}

const MODES = {
  [Mode.UNSET]: undefined,
  [Mode.DISABLE]: "disable",
  [Mode.PERMISSIVE]: "permissive",
  [Mode.STRICT]: "strict",
} as const satisfies Record<Mode, MtlsMode | undefined>;

const modeOf = (mtls: PeerAuthentication["mtls"]): MtlsMode | undefined => (mtls === undefined ? undefined : MODES[mtls.mode]);

type ModesQuery = Query<{ readonly namespace: string; readonly labels: Labels }, MtlsModes>;

const defined = new WeakMap<Engine, ModesQuery>();

/** The modes of an engine's workloads; defined on first use, since servers behind Envoy and those without a proxy ask for them alike. */
export function mtlsModesOf(ctx: Pick<GenerateContext, "engine" | "inputs">): ModesQuery {
  const known = defined.get(ctx.engine) ?? defineMtlsModes(ctx);
  defined.set(ctx.engine, known);
  return known;
}

/**
 * Modes by Istio's reference of PeerAuthentication: the workload's policy over the namespace's over the mesh's (the root namespace's),
 * the oldest of each level; what a level leaves unset it inherits; permissive where nobody says anything.
 */
function defineMtlsModes(ctx: Pick<GenerateContext, "engine" | "inputs">): ModesQuery {
  const inNamespace = ctx.engine.query<string, readonly ConfigObject<PeerAuthentication>[]>({
    name: "peerAuthenticationsIn",
    compute: (namespace) =>
      (ctx.inputs.objects.list("kindNamespace", `PeerAuthentication/${namespace}`) as readonly ConfigObject<PeerAuthentication>[]).toSorted(
        byPrecedence,
      ),
  });
  const selector = ({ spec }: ConfigObject<PeerAuthentication>): Labels => spec.selector?.matchLabels ?? {};
  const selects = (policy: ConfigObject<PeerAuthentication>): boolean => Object.keys(selector(policy)).length > 0;
  const general = (namespace: string): MtlsMode | undefined => modeOf(inNamespace(namespace).find((policy) => !selects(policy))?.spec.mtls);
  return ctx.engine.query<{ readonly namespace: string; readonly labels: Labels }, MtlsModes>({
    name: "mtlsModes",
    id: ({ namespace, labels }) => `${namespace}|${JSON.stringify(labels)}`,
    compute: ({ namespace, labels }) => {
      const root = ctx.inputs.mesh.get("mesh")?.rootNamespace ?? "istio-system";
      const own =
        namespace === root
          ? undefined
          : inNamespace(namespace).find((policy) => selects(policy) && matchesLabels(selector(policy), labels))?.spec;
      const mode = modeOf(own?.mtls) ?? (namespace === root ? undefined : general(namespace)) ?? general(root) ?? "permissive";
      const ports = Object.entries(own?.portLevelMtls ?? {}).map(([port, mtls]) => ({ port: Number(port), mode: modeOf(mtls) ?? mode }));
      return { mode, ports: ports.sort((a, b) => a.port - b.port) };
    },
  });
}
