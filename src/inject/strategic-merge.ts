import { type Fields, isFields } from "./pod.ts";

/** How the items of one list are told apart; a list that is not named here is replaced as a whole. */
interface ListRule {
  readonly key: string;
  /** Each item says one thing in one of several ways (where a volume comes from, what a variable is): another way replaces the one before. */
  readonly oneOf?: true;
  readonly items?: Rules;
}
interface Rules {
  readonly [field: string]: ListRule | Rules;
}

const CONTAINER: Rules = {
  ports: { key: "containerPort" },
  env: { key: "name", oneOf: true },
  volumeMounts: { key: "mountPath" },
  volumeDevices: { key: "devicePath" },
};

/** The lists of a pod that Kubernetes merges by a key of their items. */
const POD: Rules = {
  metadata: { ownerReferences: { key: "uid" } },
  spec: {
    containers: { key: "name", items: CONTAINER },
    initContainers: { key: "name", items: CONTAINER },
    ephemeralContainers: { key: "name", items: CONTAINER },
    volumes: { key: "name", oneOf: true },
    imagePullSecrets: { key: "name" },
    hostAliases: { key: "ip" },
    resourceClaims: { key: "name", oneOf: true },
    topologySpreadConstraints: { key: "topologyKey" },
  },
};

const isListRule = (rule: ListRule | Rules | undefined): rule is ListRule => rule !== undefined && typeof rule.key === "string";

/**
 * Puts a part of a pod over a pod, as a strategic merge patch of Kubernetes does: objects are joined, lists with a key are joined by it, others
 * are replaced, null removes, and `$patch: delete` or `replace` work on items and objects. What the patch names first in a list comes after what
 * was there. Gives a new pod; neither argument is changed.
 */
export const mergePod = <T extends Fields>(pod: T, patch: Fields): T => mergeFields(pod, patch, POD) as T;

/** The same for two forms of one container. */
export const mergeContainer = <T extends Fields>(container: T, patch: Fields): T => mergeFields(container, patch, CONTAINER) as T;

function mergeFields(base: Fields, patch: Fields, rules: Rules): Fields {
  if (patch.$patch === "replace") return withoutDirective(patch);
  const result: Fields = { ...base };
  for (const [name, value] of Object.entries(patch)) {
    if (name.startsWith("$") || name === "__proto__") continue;
    if (value === null) delete result[name];
    else if (value !== undefined) result[name] = mergeValue(base[name], value, rules[name]);
  }
  return result;
}

function mergeValue(base: unknown, patch: unknown, rule: ListRule | Rules | undefined): unknown {
  if (Array.isArray(patch)) return isListRule(rule) ? mergeLists(Array.isArray(base) ? base : [], patch, rule) : structuredClone(patch);
  if (!isFields(patch)) return patch;
  return mergeFields(isFields(base) ? base : {}, patch, isListRule(rule) || rule === undefined ? {} : rule);
}

function mergeLists(base: readonly unknown[], patch: readonly unknown[], { key, oneOf, items }: ListRule): unknown[] {
  const result = [...base];
  for (const item of patch) {
    if (!isFields(item)) {
      if (!result.includes(item)) result.push(item);
      continue;
    }
    // A key that is null is none: merging leaves it out, and the same item put over the result must find itself.
    const at = result.findIndex((other) => isFields(other) && (other[key] ?? null) === (item[key] ?? null));
    const before = result[at];
    if (item.$patch === "delete") {
      if (at !== -1) result.splice(at, 1);
    } else if (at === -1) result.push(mergeFields({}, item, items ?? {}));
    else if (oneOf === true && !isSameWay(item, before)) result[at] = mergeFields({}, item, items ?? {});
    else result[at] = mergeFields(isFields(before) ? before : {}, item, items ?? {});
  }
  return result;
}

/** Both say it in the same way; what has ways of its own below (`valueFrom`) must agree in those. */
const isSameWay = (item: Fields, before: unknown): boolean =>
  isFields(before) &&
  Object.entries(item).every(
    ([name, value]) =>
      value === null ||
      name.startsWith("$") ||
      (name in before && (name !== "valueFrom" || (isFields(value) && isSameWay(value, before[name])))),
  );

const withoutDirective = ({ $patch: _directive, ...rest }: Fields): Fields => structuredClone(rest);
