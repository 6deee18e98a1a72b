import { ANNOTATION } from "../annotations.ts";
import { type Fields, isFields } from "../pod.ts";
import { canonicalQuantity } from "../quantity.ts";
import type { TemplateInput } from "../template-input.ts";

/** Requests and limits of the proxy and of what sets its interception up: those of the annotations alone where there is one, else those of the values. */
export function proxyResources({ pod, values }: TemplateInput): Fields {
  const { annotations = {} } = pod.metadata;
  const said = {
    requests: { cpu: annotations[ANNOTATION.proxyCpu], memory: annotations[ANNOTATION.proxyMemory] },
    limits: { cpu: annotations[ANNOTATION.proxyCpuLimit], memory: annotations[ANNOTATION.proxyMemoryLimit] },
  };
  const isSaid = Object.values(said).some((side) => Object.values(side).some((value) => value !== undefined));
  return withoutNothing(isSaid ? said : values.global.proxy.resources);
}

function withoutNothing(value: Fields | object): Fields {
  return Object.fromEntries(
    Object.entries(value).flatMap(([key, child]): readonly (readonly [string, unknown])[] => {
      if (child === undefined || child === null) return [];
      if (!isFields(child)) return [[key, Array.isArray(child) ? child : (canonicalQuantity(String(child)) ?? child)]];
      const kept = withoutNothing(child);
      return Object.keys(kept).length === 0 ? [] : [[key, kept]];
    }),
  );
}
