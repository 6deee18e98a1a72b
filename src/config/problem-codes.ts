/** Every fault we can find in what a user wrote. `docs/problems.md` is made from this table and a test compares them. */
export const PROBLEM_CODES = {
  "document.unreadable": { level: "error", about: "The text is not YAML or JSON, is too large, or nests too deeply." },
  "document.not-an-object": { level: "error", about: "The document has no apiVersion, kind and metadata.name." },
  "kind.unknown": { level: "warning", about: "No such kind is known here; the document is ignored." },
  "kind.absent": { level: "error", about: "The API group is one of Istio's and has no such kind." },
  "kind.version": { level: "error", about: "The kind is known, but not in this API version." },
  "object.duplicate": { level: "error", about: "Another document has the same kind, namespace and name; the first one wins." },
  "object.shadowed": { level: "warning", about: "An earlier source holds the same object; this one is not used." },
  "metadata.name": { level: "error", about: "A name or namespace is missing, too long or not a DNS name." },
  "schema.unknown-field": { level: "error", about: "The kind has no such field." },
  "schema.newer-field": {
    level: "warning",
    about: "The kind has no such field here, but the API server's schema has: the rest of the object counts.",
  },
  "schema.wrong-type": { level: "error", about: "The value has another type than the field." },
  "field.required": { level: "error", about: "A field that must be set is missing or empty." },
  "field.invalid": { level: "error", about: "The value is not allowed here." },
  "field.range": { level: "error", about: "A number or duration is outside its range." },
  "field.host": { level: "error", about: "Not a valid host name, wildcard host or address." },
  "field.port": { level: "error", about: "Not a valid port number, name or protocol." },
  "field.regex": { level: "error", about: "Not a regular expression that Envoy (RE2) accepts." },
  "field.duplicate": { level: "error", about: "Two entries that must differ are equal." },
  "field.conflict": { level: "error", about: "Two settings exclude each other." },
  "field.deprecated": { level: "warning", about: "The field is deprecated or has no effect." },
  "field.ineffective": { level: "warning", about: "The setting is accepted, but cannot have the effect it names." },
  "reference.gateway": { level: "warning", about: "A VirtualService names a Gateway that is not there: it has no effect there." },
  "reference.host": {
    level: "warning",
    about: "No service has the host: requests to it are answered with 503, a rule for it applies to nothing.",
  },
  "reference.port": { level: "warning", about: "The service has no such port: requests to it are answered with 503." },
  "reference.subset": { level: "warning", about: "No DestinationRule gives the host such a subset: requests to it are answered with 503." },
  "reference.delegate": {
    level: "warning",
    about: "A VirtualService delegates to one that is not there, has hosts, or is not exported: the rule is left out.",
  },
  "reference.secret": {
    level: "warning",
    about: "A Gateway names a credential that is not there or cannot be used: its connections are refused.",
  },
  "conflict.host": {
    level: "warning",
    about: "A VirtualService that goes before this one has the host for the same sidecars: these rules have no effect on them.",
  },
  "conflict.address": { level: "warning", about: "Another Service has the address: what is sent to it may reach either of them." },
  "conflict.port": { level: "warning", about: "The port is taken by a server or service that goes before this one." },
  "conflict.sni": { level: "warning", about: "A server that goes before this one has the name on the port: this one is left out." },
  "route.unreachable": { level: "warning", about: "A rule can never match because an earlier one takes all its requests." },
} as const satisfies Record<string, { level: "error" | "warning"; about: string }>;

/** Stable: scripts and dashboards may rely on it. */
export type ProblemCode = keyof typeof PROBLEM_CODES;
