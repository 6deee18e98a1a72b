import { resolveShortName } from "../../base/hostname.ts";
import { type ConfigObject, objectKey } from "../../config/object.ts";
import type { Problem } from "../../config/problem.ts";
import type { CredentialSource } from "../../credentials/credential-source.ts";
import type { DestinationRule } from "../../gen/istio/networking/v1alpha3/destination_rule_pb.js";
import type { Gateway } from "../../gen/istio/networking/v1alpha3/gateway_pb.js";
import type { VirtualService } from "../../gen/istio/networking/v1alpha3/virtual_service_pb.js";
import type { RequestAuthentication } from "../../gen/istio/security/v1beta1/request_authentication_pb.js";
import type { Telemetry } from "../../gen/istio/telemetry/v1alpha1/telemetry_pb.js";
import type { GenerateContext } from "../context.ts";
import { plainKeySet } from "../policies/key-set.ts";
import { type Finding, finding, problemOf } from "./finding.ts";
import { missingCredentials, serverConflicts } from "./gateway-problems.ts";
import { defineHostConflicts } from "./host-conflicts.ts";
import { defineKnownNames } from "./known-names.ts";
import { definePortConflicts } from "./port-conflicts.ts";
import { defineServiceProblems } from "./service-problems.ts";
import { uselessProviders } from "./telemetry-problems.ts";
import { danglingNames } from "./virtual-service-problems.ts";

/** What is wrong with objects beside each other: names that lead nowhere, and claims that others have made before. */
export interface ObjectProblems {
  /** Keys of the objects that are judged; the same list as long as they are the same and somebody holds it. */
  keys(): readonly string[];
  /** The work behind `all`, an object each: for those who must give way in between. */
  steps(): Iterable<void>;
  /** Sorted by object, Services of Kubernetes last. It is one result: who holds it can bring it up to date for what the changes cost, however many objects there are. */
  all(): readonly Problem[];
}

const KINDS = ["DestinationRule", "Gateway", "RequestAuthentication", "ServiceEntry", "Telemetry", "VirtualService"] as const;

/** Defines what is found in each object beside the others, as queries: a change judges again only the objects it touches. */
export function defineObjectProblems(ctx: GenerateContext, credentials: CredentialSource): ObjectProblems {
  const { engine, inputs } = ctx;
  const findings = defineFindings(ctx);
  const ofServices = defineServiceProblems(ctx);
  const ofObject = engine.query<string, readonly Problem[]>({
    name: "problems.ofObject",
    compute: (key) => {
      const object = inputs.objects.get(key);
      return object === undefined ? NONE : found(object, findings(object));
    },
  });
  const keys = engine.query<string, readonly string[]>({
    name: "problems.keys",
    compute: () => KINDS.flatMap((kind) => inputs.objects.keys("kind", kind)),
  });
  const ofAll = engine.query<string, readonly Problem[]>({
    name: "problems.ofAll",
    compute: () => [...keys("").flatMap((key) => ofObject(key)), ...ofServices()],
  });
  /** Whether credentials are there is no matter of the inputs, and asked each time. */
  const withoutCredentials = (): readonly Problem[] =>
    inputs.objects.keys("kind", "Gateway").flatMap((key) => {
      const object = inputs.objects.get(key) as ConfigObject<Gateway> | undefined;
      return object === undefined ? NONE : found(object, missingCredentials(ctx, object, credentials));
    });
  return {
    keys: () => keys(""),
    *steps() {
      // What is asked of all services at once is asked of each before, so that it is no long step then.
      for (const namespace of ctx.registry.namespaces()) {
        for (const ref of ctx.registry.servicesIn(namespace)) {
          ctx.registry.service(ref);
          yield;
        }
      }
      for (const key of keys("")) {
        ofObject(key);
        yield;
      }
    },
    all() {
      const missing = withoutCredentials();
      return missing.length === 0 ? ofAll("") : [...inOrder([...ofAll(""), ...missing], keys("")), ...ofServices()];
    },
  };
}

/** What is found in one object, by its kind. */
function defineFindings(ctx: GenerateContext): (object: ConfigObject) => readonly Finding[] {
  const known = defineKnownNames(ctx);
  const hostConflicts = defineHostConflicts(ctx);
  const portConflicts = definePortConflicts(ctx);
  return (object) => {
    switch (object.kind) {
      case "VirtualService": {
        const service = object as ConfigObject<VirtualService>;
        return [...danglingNames(ctx, service, known), ...hostConflicts(service)];
      }
      case "DestinationRule": {
        const { spec, namespace } = object as ConfigObject<DestinationRule>;
        const host = resolveShortName(spec.host, namespace, ctx.settings.clusterDomain);
        if (host.startsWith("*") || known.portsOf(host) !== undefined) return [];
        return [finding("reference.host", ["host"], `no service has the host ${host}; the rule applies to nothing`)];
      }
      case "RequestAuthentication":
        return uselessKeys(object as ConfigObject<RequestAuthentication>);
      case "Telemetry":
        return uselessProviders(ctx, object as ConfigObject<Telemetry>);
      case "Gateway":
        return serverConflicts(ctx, object as ConfigObject<Gateway>);
      default:
        return portConflicts(object);
    }
  };
}

/** Keys that are none to Envoy. It would refuse the whole listener for them, so it is not given them, and tokens of the issuer are refused. */
const uselessKeys = ({ spec }: ConfigObject<RequestAuthentication>): readonly Finding[] =>
  spec.jwtRules.flatMap(({ jwks }, index) =>
    jwks === "" || plainKeySet(jwks) !== undefined
      ? []
      : [
          finding(
            "field.ineffective",
            ["jwtRules", index, "jwks"],
            "no key in it is one that Envoy can use; all tokens of the issuer are refused",
          ),
        ],
  );

const NONE: readonly Problem[] = [];

/** Problems in the order of their objects. */
function inOrder(problems: readonly Problem[], keys: readonly string[]): readonly Problem[] {
  const byObject = Map.groupBy(problems, ({ object }) => objectKey(object));
  return keys.flatMap((key) => byObject.get(key) ?? NONE);
}

const found = (object: ConfigObject, findings: readonly Finding[]): readonly Problem[] =>
  findings.length === 0 ? NONE : findings.map((one) => problemOf(object, one));
