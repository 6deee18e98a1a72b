import { assignmentBytes } from "../../envoy/endpoint/assignment-bytes.ts";
import type { LoadAssignmentInput } from "../../envoy/endpoint/load-assignment.ts";
import { encodedBytes, sameEncoded } from "../../wire/encode.ts";
import type { Encoded } from "../../wire/encoded.ts";
import { ENDPOINT_TYPE } from "../../wire/type-urls.ts";
import { type ClientClass, clientClassId, clientClassOf } from "../clusters/client-class.ts";
import type { GenerateContext } from "../context.ts";
import { type AssignmentKey, type AssignmentPlan, assignmentKey, needsOf, type Place, placeOf } from "../endpoints/assignment-key.ts";
import { assignmentsOf } from "../endpoints/assignments.ts";
import type { Destinations } from "./destinations.ts";
import type { NamedResources } from "./named-provider.ts";

interface EndpointOwner {
  readonly client: ClientClass;
  readonly place: Place;
}

interface PlanKey {
  readonly client: ClientClass;
  readonly name: string;
}

/** Load assignments by cluster name. Where a client runs counts only as far as the rules of its destinations look at it. */
export function grpcEndpoints(ctx: GenerateContext, destinations: Destinations): NamedResources<EndpointOwner> {
  const assignments = assignmentsOf(ctx);
  const plans = ctx.engine.query<PlanKey, AssignmentPlan | undefined>({
    name: "grpc.assignmentPlan",
    id: ({ client, name }) => `${name}|${clientClassId(client)}`,
    compute: ({ client, name }) => {
      const destination = destinations.find(client, name);
      return destination && assignments.plan({ ...destination, sni: false });
    },
  });
  const built = ctx.engine.query<AssignmentKey, Encoded>({
    name: "grpc.assignment",
    id: ({ id }) => id,
    compute: (key) => encodedAssignment(assignments.select(key, { resolved: true, direct: true })),
    same: sameEncoded,
  });
  return {
    typeUrl: ENDPOINT_TYPE,
    ownerOf: (view, names) => {
      const client = clientClassOf(ctx, view);
      const planned = [...names].flatMap((name) => plans({ client, name }) ?? []);
      return { client, place: placeOf(view, needsOf(planned, assignments.networked(""))) };
    },
    ownerId: ({ client, place }) => `${clientClassId(client)}|${JSON.stringify(place)}`,
    find: ({ client, place }, name) => {
      const plan = plans({ client, name });
      if (plan === undefined) return undefined;
      const { service, port } = plan;
      const endpoints = ctx.registry.endpoints(service, port).map(({ objectKey }) => objectKey);
      const own = ctx.registry.service(service)?.objectKey;
      const rules = destinations.find(client, name)?.rule?.keys ?? [];
      return {
        resource: built(assignmentKey(plan, place)),
        objects: [...new Set([...(own === undefined ? [] : [own]), ...endpoints, ...rules])],
      };
    },
  };
}

/** TLS is the cluster's to decide: gRPC cannot choose it by endpoint. */
function encodedAssignment({ clusterName, localities }: LoadAssignmentInput): Encoded {
  const bare = localities.map((locality) => ({
    ...locality,
    endpoints: locality.endpoints.map((endpoint) => ({ ...endpoint, mutualTls: false })),
  }));
  return encodedBytes(ENDPOINT_TYPE, clusterName, assignmentBytes({ clusterName, localities: bare }));
}
