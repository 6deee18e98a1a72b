import type { DescMessage, MessageShape } from "@bufbuild/protobuf";
import { type Place, placeOf } from "../checks/place.ts";
import type { CustomResource, KindDef } from "../kind-def.ts";
import type { ConfigObject } from "../object.ts";
import { readMessage } from "../parse/read-message.ts";
import { compileRules, type SchemaRules } from "../parse/schema-rules.ts";

/** Annotation that has a policy counted and not enforced. */
export const DRY_RUN = "istio.io/dry-run";

/** What makes up one of Istio's kinds. */
export interface IstioKind<D extends DescMessage>
  extends Pick<KindDef, "kind" | "group" | "versions" | "plural" | "singular" | "shortNames" | "observe"> {
  /** Message of the spec. All served versions share it. */
  readonly schema: D;
  /** What the CRD's schema demands of the JSON and the message can no longer tell. */
  readonly rules: SchemaRules;
  /** Whether the CRD demands a spec. */
  readonly needsSpec?: boolean;
  /** See `CustomResource`. */
  readonly storedVersion?: string;
  readonly columns?: CustomResource["columns"];
  /** Whether `DRY_RUN` means something for the kind. */
  readonly hasDryRun?: boolean;
  /** Semantic rules. `place` is the spec. */
  readonly check: (spec: MessageShape<D>, place: Place, object: ConfigObject<MessageShape<D>>) => void;
}

/** Builds the table row of an Istio kind: strict reading into the message, then the CRD's bounds, then the rules of the admission webhook. */
export function istioKind<D extends DescMessage>(def: IstioKind<D>): KindDef<MessageShape<D>> {
  const checkRules = compileRules(def.rules);
  return {
    kind: def.kind,
    group: def.group,
    versions: def.versions,
    plural: def.plural,
    singular: def.singular,
    shortNames: def.shortNames,
    scope: "Namespaced",
    body: "spec",
    ...(def.observe !== undefined && { observe: def.observe }),
    parse(body, report) {
      const absent = body === undefined || body === null;
      if (absent && def.needsSpec === true) report("field.required", ["spec"], "must be set");
      let readable = true;
      const message = readMessage(def.schema, body, {
        report: (code, path, text) => {
          if (code === "document.unreadable") readable = false;
          report(code, path, text);
        },
        path: ["spec"],
      });
      if (readable) checkRules(body, report, ["spec"]);
      return message;
    },
    validate: (object, report) => {
      def.check(object.spec, placeOf(report, ["spec"]), object);
      if (def.hasDryRun !== true && object.annotations[DRY_RUN] !== undefined)
        placeOf(report, ["metadata", "annotations", DRY_RUN]).fault("field.conflict", `a ${def.kind} has no dry run: it would be in force`);
    },
    custom: customOf(def),
  };
}

const customOf = <D extends DescMessage>({ schema, rules, needsSpec, storedVersion, columns }: IstioKind<D>): CustomResource => ({
  schema,
  rules,
  ...(needsSpec !== undefined && { needsSpec }),
  ...(storedVersion !== undefined && { storedVersion }),
  ...(columns !== undefined && { columns }),
});
