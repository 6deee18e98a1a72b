import { levelOf, type Problem } from "../../config/problem.ts";
import type { ServiceRef } from "../../model/service.ts";
import type { GenerateContext } from "../context.ts";
import { compareText } from "../lookups/precedence.ts";
import { type Finding, finding } from "./finding.ts";

type Context = Pick<GenerateContext, "engine" | "registry" | "lookups">;

/** An address that a Service of Kubernetes has. */
interface Claim {
  readonly objectKey: string;
  readonly address: string;
  readonly createdAt: number;
}

/**
 * Services of Kubernetes that cannot be reached as they are written: names that lead back to themselves, and addresses that another has. An API
 * server gives an address once, but files may repeat one.
 */
export function defineServiceProblems(ctx: Context): () => readonly Problem[] {
  const claims = ctx.engine.query<string, readonly Claim[]>({
    name: "problems.serviceAddresses",
    compute: (namespace) => ctx.registry.servicesIn(namespace).flatMap((ref) => claimsOf(ctx, ref)),
  });
  const all = ctx.engine.query<"", readonly Problem[]>({
    name: "problems.ofServices",
    compute: () => {
      const found = [...circles(ctx), ...repeated(ctx.registry.namespaces().flatMap((namespace) => claims(namespace)))];
      return found.length === 0 ? NONE : found.toSorted(([a], [b]) => compareText(a, b)).map(problemOfKey);
    },
  });
  return () => all("");
}

const NONE: readonly Problem[] = [];

type Found = readonly [objectKey: string, finding: Finding];

function claimsOf({ registry }: Context, ref: ServiceRef): readonly Claim[] {
  const service = registry.service(ref);
  if (service?.source !== "Kubernetes") return [];
  const { objectKey, createdAt } = service;
  return service.addresses.map((address) => ({ objectKey, address, createdAt }));
}

function circles({ registry, lookups }: Context): readonly Found[] {
  return lookups.aliases.circular().flatMap((ref): readonly Found[] => {
    const service = registry.service(ref);
    if (service === undefined) return [];
    const message = `${service.externalName} leads in a circle of ExternalNames, so that this name stands for nothing`;
    return [[service.objectKey, finding("reference.host", ["externalName"], message)]];
  });
}

/** Of those who have an address, the oldest is not told: the others are to change. */
function repeated(claims: readonly Claim[]): readonly Found[] {
  return [...Map.groupBy(claims, ({ address }) => address)].flatMap(([address, group]) => {
    const [first, ...others] = group.toSorted((a, b) => a.createdAt - b.createdAt || compareText(a.objectKey, b.objectKey));
    return others.map(({ objectKey }): Found => {
      const message = `${first?.objectKey.replace("/", " ")} has the address ${address}, too: what is sent to it by address may reach either of them`;
      return [objectKey, finding("conflict.address", ["clusterIP"], message)];
    });
  });
}

function problemOfKey([key, found]: Found): Problem {
  const [kind = "", namespace = "", name = ""] = key.split("/");
  return { ...found, level: levelOf(found.code), object: { kind, namespace, name } };
}
