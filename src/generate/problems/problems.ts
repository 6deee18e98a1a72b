import { resolveShortName } from "../../base/hostname.ts";
import type { ConfigObject } from "../../config/object.ts";
import type { Problem } from "../../config/problem.ts";
import type { CredentialSource } from "../../credentials/credential-source.ts";
import type { DestinationRule } from "../../gen/istio/networking/v1alpha3/destination_rule_pb.js";
import type { Gateway } from "../../gen/istio/networking/v1alpha3/gateway_pb.js";
import type { VirtualService } from "../../gen/istio/networking/v1alpha3/virtual_service_pb.js";
import type { RequestAuthentication } from "../../gen/istio/security/v1beta1/request_authentication_pb.js";
import type { Telemetry } from "../../gen/istio/telemetry/v1alpha1/telemetry_pb.js";
import type { GenerateContext } from "../context.ts";
import { usableKeySet } from "../policies/key-set.ts";
import { type Finding, finding, problemOf } from "./finding.ts";
import { missingCredentials, serverConflicts } from "./gateway-problems.ts";
import { defineHostConflicts } from "./host-conflicts.ts";
import { defineKnownNames } from "./known-names.ts";
import { definePortConflicts } from "./port-conflicts.ts";
import { uselessProviders } from "./telemetry-problems.ts";
import { danglingNames } from "./virtual-service-problems.ts";

/** What is wrong with objects beside each other: names that lead nowhere, and claims that others have made before. */
export interface ObjectProblems {
  /** The work behind `all`, an object each: for those who must give way in between. */
  steps(): Iterable<void>;
  /** Sorted by object. What did not change is not judged again as long as somebody holds it. */
  all(): readonly Problem[];
}

const KINDS = ["DestinationRule", "Gateway", "RequestAuthentication", "ServiceEntry", "Telemetry", "VirtualService"] as const;

export function defineObjectProblems(ctx: GenerateContext, credentials: CredentialSource): ObjectProblems {
  const { engine, inputs } = ctx;
  const known = defineKnownNames(ctx);
  const hostConflicts = defineHostConflicts(ctx);
  const portConflicts = definePortConflicts(ctx);
  const findings = (object: ConfigObject): readonly Finding[] => {
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
  const ofObject = engine.query<string, readonly Problem[]>({
    name: "problems.ofObject",
    compute: (key) => {
      const object = inputs.objects.get(key);
      return object === undefined ? NONE : found(object, findings(object));
    },
  });
  const keys = (): readonly string[] => KINDS.flatMap((kind) => inputs.objects.keys("kind", kind));
  return {
    *steps() {
      // What is asked of all services at once is asked of each before, so that it is no long step then.
      for (const namespace of ctx.registry.namespaces()) {
        for (const ref of ctx.registry.servicesIn(namespace)) {
          ctx.registry.service(ref);
          yield;
        }
      }
      for (const key of keys()) {
        ofObject(key);
        yield;
      }
    },
    all: () =>
      keys().flatMap((key) => {
        const object = key.startsWith("Gateway/") ? (inputs.objects.get(key) as ConfigObject<Gateway> | undefined) : undefined;
        return object === undefined ? ofObject(key) : [...ofObject(key), ...found(object, missingCredentials(ctx, object, credentials))];
      }),
  };
}

/** Keys that are none to Envoy. It would refuse the whole listener for them, so it is not given them, and tokens of the issuer are refused. */
const uselessKeys = ({ spec }: ConfigObject<RequestAuthentication>): readonly Finding[] =>
  spec.jwtRules.flatMap(({ jwks }, index) =>
    jwks === "" || usableKeySet(jwks) !== undefined
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

const found = (object: ConfigObject, findings: readonly Finding[]): readonly Problem[] =>
  findings.length === 0 ? NONE : findings.map((one) => problemOf(object, one));
