import type { MeshConfig, MeshConfig_ExtensionProvider } from "../../../gen/istio/mesh/v1alpha1/mesh_config_pb.js";

/** A provider of the mesh by name, in any case, as Istio compares them. */
export function providerNamed(mesh: MeshConfig, name: string | undefined): MeshConfig_ExtensionProvider | undefined {
  if (name === undefined) return undefined;
  const wanted = name.toLowerCase();
  return mesh.extensionProviders.find((one) => one.name.toLowerCase() === wanted);
}
