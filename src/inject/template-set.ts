import { messageOf } from "../base/errors.ts";
import { DOCUMENT_LIMITS, type DocumentLimits } from "../config/documents/document-limits.ts";
import { parseDocument } from "../config/documents/parse-document.ts";
import type { InjectionConfig } from "./injection-config.ts";
import { isFields, type PodOverlay } from "./pod.ts";
import { type CompiledTemplate, compileTemplate } from "./template/compile-template.ts";
import { templateData } from "./template/template-data.ts";
import type { BuiltInTemplate, TemplateInput } from "./template-input.ts";
import { BUILT_IN_TEMPLATES } from "./templates/index.ts";

/** All templates by name: the built-in ones, and over them those of users. */
export type TemplateSet = ReadonlyMap<string, BuiltInTemplate>;

/** A template of a user that cannot be read, or gives no pod. The message names the template. */
export class TemplateError extends Error {
  override readonly name = "TemplateError";
}

/** Reads the templates of a configuration. Throws `TemplateError`. */
export function templateSet({ templates }: Pick<InjectionConfig, "templates">): TemplateSet {
  const set = new Map(Object.entries(BUILT_IN_TEMPLATES));
  for (const [name, text] of Object.entries(templates)) set.set(name, textTemplate(name, text));
  return set;
}

function textTemplate(name: string, text: string): BuiltInTemplate {
  const guard = <T>(work: () => T): T => {
    try {
      return work();
    } catch (error) {
      throw new TemplateError(`template ${JSON.stringify(name)}: ${messageOf(error)}`);
    }
  };
  const compiled = guard(() => compileTemplate(text));
  return (input) => guard(() => overlayOf(compiled, input));
}

/** Istio's own templates give the name of a user's volume twice. */
const LIMITS: DocumentLimits = { ...DOCUMENT_LIMITS, repeatedKeys: "last" };

function overlayOf(compiled: CompiledTemplate, input: TemplateInput): PodOverlay {
  const parsed = parseDocument(compiled(templateData(input)), LIMITS);
  if ("fault" in parsed) throw new Error(`what it gives is no YAML: ${parsed.fault} (line ${parsed.lineOffset + 1} of the result)`);
  const content = parsed.parts[0]?.content ?? {};
  if (!isFields(content)) throw new Error("what it gives is not a part of a pod");
  const { metadata, spec } = content;
  return { ...(isFields(metadata) && { metadata }), ...(isFields(spec) && { spec }) };
}

/** The templates for one pod: those its annotation names, else the default ones, aliases resolved. */
export function templateNames(annotation: string | undefined, { defaultTemplates, aliases }: InjectionConfig): readonly string[] {
  const names = annotation === undefined ? defaultTemplates : annotation.split(",").map((name) => name.trim());
  return names.flatMap((name) => (Object.hasOwn(aliases, name) ? (aliases[name] ?? []) : [name]));
}
