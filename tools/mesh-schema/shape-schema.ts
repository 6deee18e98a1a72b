import type { SettingDef } from "../../src/settings/setting-def.ts";
import type { Shape } from "../../src/settings/shape.ts";
import { SETTINGS } from "../../src/settings/table.ts";
import { DURATION_PATTERN, type Schema } from "./message-schema.ts";

const ADDRESS_PATTERN = "^$|^(\\[[0-9a-fA-F:.%]+\\]|[A-Za-z0-9._-]*):\\d{1,5}$";

/** The schema of a field of the process. */
export function shapeSchema(shape: Shape): Schema {
  const description = { description: shape.restart === true ? `${shape.about} A change takes effect at the next start.` : shape.about };
  switch (shape.is) {
    case "text":
      return {
        ...description,
        type: shape.required === true ? "string" : ["string", "null"],
        ...(shape.format === "address" && { pattern: ADDRESS_PATTERN }),
        ...(shape.format === "url" && { pattern: "^$|^https?://" }),
        ...(shape.required === true && { minLength: 1 }),
        ...(shape.default !== undefined && { default: shape.default }),
      };
    case "flag":
      return { ...description, type: ["boolean", "null"], default: shape.default };
    case "list":
      return { ...description, type: ["array", "null"], items: shapeSchema(shape.of) };
    case "dict":
      return { ...description, type: ["object", "null"], additionalProperties: { type: ["string", "number", "boolean", "null"] } };
    case "group":
      return { ...description, ...groupSchema(shape) };
  }
}

function groupSchema(shape: Shape & { is: "group" }): Schema {
  const fields = Object.entries(shape.fields);
  const required = fields.filter(([, field]) => field.is === "text" && field.required === true).map(([name]) => name);
  return {
    type: required.length > 0 ? "object" : ["object", "null"],
    additionalProperties: false,
    properties: Object.fromEntries(fields.map(([name, field]) => [name, shapeSchema(field)])),
    ...(required.length > 0 && { required }),
  };
}

/** The schema of `env`: every setting we know with its type; others are ignored with a warning, so they pass. */
export function envSchema(about: string): Schema {
  const properties = Object.values<SettingDef>(SETTINGS)
    .filter((def) => def.envOnly !== true)
    .map((def) => [def.env, settingSchema(def)]);
  return {
    description: about,
    type: ["object", "null"],
    properties: Object.fromEntries(properties),
    additionalProperties: { type: ["string", "number", "boolean", "null"] },
  };
}

function settingSchema(def: SettingDef): Schema {
  return { description: def.about, ...settingType(def), ...(def.default !== undefined && { default: def.default }) };
}

function settingType(def: SettingDef): Schema {
  switch (def.type) {
    case "string":
      return { type: ["string", "number", "boolean", "null"] };
    case "bool":
      return { type: ["boolean", "string", "number", "null"] };
    case "int":
    case "port":
      return { type: ["integer", "string", "null"], pattern: "^\\+?\\d*$" };
    case "float":
      return { type: ["number", "string", "null"] };
    case "duration":
      return { type: ["string", "number", "null"], pattern: `^$|${DURATION_PATTERN}` };
    case "range":
      return { type: ["string", "null"], pattern: "^$|^[0-9a-fA-F:.]+(/\\d{1,3})?$" };
    case "address":
      return { type: ["string", "null"], pattern: ADDRESS_PATTERN };
    case "choice":
      return { enum: [...(def.choices ?? []), "", null] };
  }
}
