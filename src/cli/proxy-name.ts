import { type Arguments, usageError } from "./arguments.ts";
import type { Flag } from "./command.ts";

/** For commands that name a proxy. */
export const NAMESPACE_FLAG: Flag = {
  name: "namespace",
  short: "n",
  value: "NAMESPACE",
  about: "namespace of a proxy that is named without one",
};

/** Reads `[pod/]NAME[.NAMESPACE]`, as Istio's istioctl takes it, into `name.namespace`. */
export function proxyName(word: string, args: Pick<Arguments, "text">): string {
  const name = word.replace(/^pods?\//, "");
  if (name === "" || name.includes("/")) throw usageError(`${JSON.stringify(word)} is not the name of a proxy such as reviews-v1.shop`);
  const namespace = args.text("namespace");
  if (namespace === undefined) return name;
  return name.endsWith(`.${namespace}`) ? name : `${name}.${namespace}`;
}
