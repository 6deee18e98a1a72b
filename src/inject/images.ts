import { ANNOTATION } from "./annotations.ts";
import type { Pod } from "./pod.ts";
import type { InjectionValues } from "./values.ts";

const VARIANTS = ["distroless", "debug"];

/** Images of the proxy and of what sets interception up: `hub/image:tag`, with the variant that the pod, ProxyConfig or the values ask for. */
export function proxyImages(values: InjectionValues, pod: Pod, imageType: string): { readonly proxy: string; readonly init: string } {
  const { hub, tag, variant, proxy, proxy_init } = values.global;
  const own = pod.metadata.annotations?.[ANNOTATION.proxyImageType];
  const image = (name: string, type: string): string => `${hub}/${name || "proxyv2"}:${variantOf(tag, own ?? type)}`;
  return { proxy: image(proxy.image, imageType || variant), init: image(proxy_init.image, variant) };
}

/** A tag with another variant in the place of its own; `default` is none. */
function variantOf(tag: string, type: string): string {
  if (type === "") return tag;
  const own = VARIANTS.find((variant) => tag.endsWith(`-${variant}`));
  const plain = own === undefined ? tag : tag.slice(0, -own.length - 1);
  return type === "default" ? plain : `${plain}-${type}`;
}
