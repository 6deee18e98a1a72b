import type { LoadedMesh } from "../../config/mesh/load-mesh.ts";
import type { ConfigObject } from "../../config/object.ts";
import { admittedNamespaces } from "../../config/store/admitted-namespaces.ts";

/** Objects by key. */
export type Objects = ReadonlyMap<string, ConfigObject>;

/** Of all objects those that count: the ones in namespaces that `discoverySelectors` take. */
export function admittedObjects(all: Objects, { mesh }: Pick<LoadedMesh, "mesh">): Objects {
  const { admits } = admittedNamespaces(mesh.discoverySelectors, (namespace) => all.get(`Namespace//${namespace}`)?.labels);
  return new Map([...all].filter(([, { namespace }]) => admits(namespace)));
}
