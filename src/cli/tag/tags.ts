import type { KubeClient } from "../../kube/kube-client.ts";
import type { KubeObject, ResourceType } from "../../kube/resource-type.ts";
import {
  defaultTagValidator,
  MUTATING_CONFIGURATIONS,
  revisionLabel,
  TAG,
  tagWebhookConfiguration,
  VALIDATING_CONFIGURATIONS,
} from "../../webhooks/webhook-configurations.ts";
import { type Arguments, usageError } from "../arguments.ts";
import type { Flag } from "../command.ts";
import { chosenInjector, revisionInput } from "./revision-input.ts";

export const TAG_FLAGS: readonly Flag[] = [
  { name: "revision", short: "r", value: "REVISION", about: "the revision that the tag is to lead to" },
  { name: "istioNamespace", short: "i", value: "NAMESPACE", about: "namespace of its control plane (default istio-system)" },
  { name: "overwrite", about: "move a tag that leads to another revision" },
];

const NAMESPACES: ResourceType = { group: "", version: "v1", plural: "namespaces", namespaced: false };

/** A tag, and where it is used. */
export interface Tag {
  readonly tag: string;
  readonly revision: string;
  readonly namespaces: readonly string[];
}

/** One webhook configuration, and of which sort it is. */
export interface Configuration {
  readonly type: ResourceType;
  readonly object: KubeObject;
}

/** The one tag that is named. */
export function namedTag({ operands }: Arguments): string {
  const [tag, ...more] = operands;
  if (tag === undefined || more.length > 0) throw usageError("name one tag");
  if (!/^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$/.test(tag))
    throw usageError(`${JSON.stringify(tag)} cannot be a tag: small letters, digits and dashes`);
  return tag;
}

/** What has to be in the cluster for a tag to lead to the revision that is asked for. */
export async function tagConfigurations(client: KubeClient, args: Arguments): Promise<readonly Configuration[]> {
  const tag = namedTag(args);
  const revision = args.text("revision");
  const namespace = args.text("istioNamespace") ?? "istio-system";
  if (revision === undefined) throw usageError("say with --revision where the tag is to lead");
  if ((await injectorsOf(client, tag)).length > 0)
    throw usageError(`there is a revision ${JSON.stringify(tag)}: a tag of that name would inject the same pods once more`);
  const before = (await configurationsOf(client, tag)).map(({ object }) => revisionLabel(object)).find((one) => one !== revision);
  if (before !== undefined && !args.has("overwrite"))
    throw usageError(`${JSON.stringify(tag)} leads to revision ${JSON.stringify(before)}; --overwrite moves it`);
  const input = revisionInput(chosenInjector(await injectorsOf(client, revision), revision, namespace), namespace);
  return [
    { type: MUTATING_CONFIGURATIONS, object: tagWebhookConfiguration(tag, input) },
    ...(tag === "default" ? [{ type: VALIDATING_CONFIGURATIONS, object: defaultTagValidator(input) }] : []),
  ];
}

/** What there is of a tag in the cluster, under whatever names. */
export async function configurationsOf(client: KubeClient, tag: string): Promise<readonly Configuration[]> {
  const found = [MUTATING_CONFIGURATIONS, VALIDATING_CONFIGURATIONS].map(async (type) =>
    (await client.list(type, { labelSelector: `${TAG}=${tag}` })).items.map((object) => ({ type, object })),
  );
  return (await Promise.all(found)).flat();
}

const injectorsOf = async (client: KubeClient, revision: string): Promise<readonly KubeObject[]> =>
  (await client.list(MUTATING_CONFIGURATIONS, { labelSelector: `istio.io/rev=${revision},!${TAG}` })).items;

/** All tags by name, with the namespaces whose pods they inject. */
export async function allTags(client: KubeClient): Promise<readonly Tag[]> {
  const { items } = await client.list(MUTATING_CONFIGURATIONS, { labelSelector: TAG });
  const namespaces = await client.list(NAMESPACES, { metadataOnly: true });
  return items
    .map((object) => {
      const tag = object.metadata.labels?.[TAG] ?? "";
      return { tag, revision: revisionLabel(object), namespaces: users(tag, namespaces.items) };
    })
    .sort((a, b) => (a.tag < b.tag ? -1 : 1));
}

/** Namespaces that are injected by a tag; the older label means the default one, and goes before. */
const users = (tag: string, namespaces: readonly KubeObject[]): readonly string[] =>
  namespaces
    .filter(({ metadata: { labels = {} } }) => {
      const older = labels["istio-injection"];
      return older === undefined ? labels["istio.io/rev"] === tag : tag === "default" && older === "enabled";
    })
    .map(({ metadata }) => metadata.name)
    .sort();
