/** OpenAPI v3 as Kubernetes takes it in a CustomResourceDefinition: a structural schema. */
export interface JsonSchema {
  readonly type?: "object" | "array" | "string" | "integer" | "number" | "boolean";
  readonly format?: "int32" | "double" | "float" | "byte" | "date-time";
  readonly properties?: Readonly<Record<string, JsonSchema>>;
  /** Schema of the values of a map. */
  readonly additionalProperties?: JsonSchema;
  readonly items?: JsonSchema;
  readonly required?: readonly string[];
  readonly enum?: readonly string[];
  readonly nullable?: true;
  readonly minimum?: number;
  readonly maximum?: number;
  readonly minLength?: number;
  readonly maxLength?: number;
  readonly minItems?: number;
  readonly maxItems?: number;
  readonly minProperties?: number;
  readonly maxProperties?: number;
  readonly pattern?: string;
  readonly oneOf?: readonly JsonSchema[];
  readonly anyOf?: readonly JsonSchema[];
  readonly allOf?: readonly JsonSchema[];
  readonly not?: JsonSchema;
  readonly "x-kubernetes-preserve-unknown-fields"?: true;
  readonly "x-kubernetes-int-or-string"?: true;
  readonly "x-kubernetes-list-type"?: "map";
  readonly "x-kubernetes-list-map-keys"?: readonly string[];
  readonly "x-kubernetes-validations"?: readonly CelRule[];
}

/** A rule in the expression language of Kubernetes, and what to say where it does not hold. */
export interface CelRule {
  readonly rule: string;
  readonly message: string;
}
