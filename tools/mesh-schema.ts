import { MeshConfigSchema } from "../src/gen/istio/mesh/v1alpha1/mesh_config_pb.js";
import { MeshNetworksSchema } from "../src/gen/istio/mesh/v1alpha1/mesh_networks_pb.js";
import { PROCESS_FIELDS } from "../src/settings/process-fields.ts";
import type { Shape } from "../src/settings/shape.ts";
import { FIELD_TEXTS } from "./mesh-schema/field-texts.ts";
import { MessageSchemas, type Schema } from "./mesh-schema/message-schema.ts";
import { settingsPage } from "./mesh-schema/settings-page.ts";
import { envSchema, shapeSchema } from "./mesh-schema/shape-schema.ts";

/** The generated pages about mesh configuration, by path under the project. */
export function meshDocs(): Readonly<Record<string, string>> {
  return {
    "docs/mesh.schema.json": `${JSON.stringify(meshSchema(), undefined, 2)}\n`,
    "docs/settings.md": settingsPage(),
  };
}

/** JSON Schema (2020-12) of mesh.yaml, made from the messages of the Istio API and the table of process fields. */
export function meshSchema(): Schema {
  const messages = new MessageSchemas(FIELD_TEXTS);
  const { env, ...own } = PROCESS_FIELDS.fields;
  const properties: Record<string, Schema> = {
    include: {
      description: "Further files inside etc/istio, relative to it, merged over this one in order. Only mesh.yaml itself may include.",
      type: ["array", "null"],
      items: { type: "string", minLength: 1 },
    },
    ...Object.fromEntries(Object.entries<Shape>(own).map(([name, shape]) => [name, shapeSchema(shape)])),
    env: envSchema(env.about),
    meshNetworks: {
      description: "Networks of the mesh; networks.yaml holds the same and wins.",
      ...messages.reference(MeshNetworksSchema),
    },
    ...messages.propertiesOf(MeshConfigSchema, "#"),
  };
  return {
    $schema: "https://json-schema.org/draft/2020-12/schema",
    title: "mesh.yaml",
    description: "Configuration of a mesh (Istio's MeshConfig) and of its control plane process.",
    type: ["object", "null"],
    additionalProperties: false,
    properties,
    $defs: Object.fromEntries(Object.entries(messages.definitions).sort(([a], [b]) => (a < b ? -1 : 1))),
  };
}
