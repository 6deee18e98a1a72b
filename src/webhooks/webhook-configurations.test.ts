import { describe, expect, it } from "vitest";
import { type LabelCondition, selectsLabels } from "../base/labels.ts";
import { namespaceLabels } from "../config/namespace-labels.ts";
import { revisionSelects } from "../inject/policy.ts";
import type { KubeObject } from "../kube/resource-type.ts";
import {
  type ConfigurationInput,
  defaultTagValidator,
  mutatingWebhookConfiguration,
  tagWebhookConfiguration,
  validatingWebhookConfiguration,
} from "./webhook-configurations.ts";

interface Webhook {
  readonly name: string;
  readonly failurePolicy: string;
  readonly timeoutSeconds: number;
  readonly clientConfig: { readonly service?: object; readonly url?: string; readonly caBundle?: string };
  readonly namespaceSelector: { readonly matchExpressions: readonly LabelCondition[] };
  readonly objectSelector: { readonly matchExpressions: readonly LabelCondition[] };
}

const input = (revision = "default"): ConfigurationInput => ({
  revision,
  namespace: "istio-system",
  place: { service: { name: "istiod", namespace: "istio-system" } },
  caBundle: "PEM",
  failClosed: true,
  enableNamespacesByDefault: false,
});
const webhooksOf = (object: KubeObject): readonly Webhook[] => object.webhooks as readonly Webhook[];

interface PodPlace {
  readonly namespace: string;
  /** Labels of the namespace, and of the pod. */
  readonly labels?: Record<string, string>;
  readonly pod?: Record<string, string>;
}

/** The webhooks that the API server would call for a pod. */
const called = (object: KubeObject, { namespace, labels = {}, pod = {} }: PodPlace): readonly Webhook[] => {
  const holds = (expressions: readonly LabelCondition[], of: Record<string, string>): boolean =>
    selectsLabels({ matchLabels: {}, matchExpressions: expressions.map((one) => ({ ...one, values: one.values ?? [] })) }, of);
  return webhooksOf(object).filter(
    ({ namespaceSelector, objectSelector }) =>
      holds(namespaceSelector.matchExpressions, { ...namespaceLabels(namespace, labels) }) && holds(objectSelector.matchExpressions, pod),
  );
};

describe("webhook configurations", () => {
  const namespaces = [
    {},
    { "istio-injection": "enabled" },
    { "istio-injection": "disabled" },
    { "istio.io/rev": "canary" },
    { "istio.io/rev": "default" },
  ];
  const pods = [{}, { "sidecar.istio.io/inject": "true" }, { "sidecar.istio.io/inject": "false" }, { "istio.io/rev": "canary" }];
  for (const revision of ["default", "canary"])
    for (const namespace of namespaces)
      for (const pod of pods)
        it(`${revision}: ${JSON.stringify(namespace)} with ${JSON.stringify(pod)} is called for at most once, by the rules of labels`, () => {
          const found = called(mutatingWebhookConfiguration(input(revision)), { namespace: "shop", labels: namespace, pod });
          expect(found.length).toBe(revisionSelects(namespace, pod, [revision]) ? 1 : 0);
        });

  it("a tag stands for its revision", () => {
    const tag = tagWebhookConfiguration("prod", input("canary"));
    expect(tag.metadata).toMatchObject({ name: "istio-revision-tag-prod", labels: { "istio.io/rev": "canary", "istio.io/tag": "prod" } });
    expect(called(tag, { namespace: "shop", labels: { "istio.io/rev": "prod" } })).toHaveLength(1);
    expect(called(tag, { namespace: "shop", labels: { "istio.io/rev": "canary" } })).toHaveLength(0);
  });

  it("the tag `default` stands for the older labels, and judges objects that name no revision", () => {
    const [tag, validator] = [tagWebhookConfiguration("default", input("canary")), defaultTagValidator(input("canary"))];
    expect(called(tag, { namespace: "shop", labels: { "istio-injection": "enabled" } })).toHaveLength(1);
    expect(validator.metadata).toMatchObject({
      name: "istiod-default-validator",
      labels: { "istio.io/rev": "canary", "istio.io/tag": "default" },
    });
    expect(called(validator, { namespace: "shop" })).toHaveLength(1);
    expect(called(validator, { namespace: "shop", pod: { "istio.io/rev": "canary" } })).toEqual([]);
  });

  it("nothing in our own namespace can wait for us", () => {
    for (const labels of namespaces)
      for (const pod of pods)
        for (const { failurePolicy } of called(mutatingWebhookConfiguration(input()), { namespace: "istio-system", labels, pod }))
          expect(failurePolicy).toBe("Ignore");
    expect(called(mutatingWebhookConfiguration(input()), { namespace: "istio-system", labels: { "istio-injection": "enabled" } })).toEqual(
      [],
    );
    expect(
      called(validatingWebhookConfiguration(input()), { namespace: "istio-system" }).map(({ failurePolicy }) => failurePolicy),
    ).toEqual(["Ignore"]);
    expect(called(validatingWebhookConfiguration(input()), { namespace: "shop" })).toHaveLength(1);
  });

  it("asks for few seconds, carries the roots, and is open until told", () => {
    for (const make of [mutatingWebhookConfiguration, validatingWebhookConfiguration])
      for (const { timeoutSeconds, clientConfig, failurePolicy } of webhooksOf(make({ ...input(), failClosed: false }))) {
        expect(timeoutSeconds).toBeLessThanOrEqual(5);
        expect(clientConfig).toMatchObject({ caBundle: Buffer.from("PEM").toString("base64"), service: { name: "istiod", port: 443 } });
        expect(failurePolicy).toBe("Ignore");
      }
  });

  it("has Istio's names, and leads outside of the cluster where told", () => {
    const canary = { ...input("canary"), namespace: "mesh", place: { url: "https://host:15017/" } };
    expect(mutatingWebhookConfiguration(input()).metadata.name).toBe("istio-sidecar-injector");
    expect(mutatingWebhookConfiguration(canary).metadata.name).toBe("istio-sidecar-injector-canary-mesh");
    expect(validatingWebhookConfiguration(input()).metadata.name).toBe("istio-validator-istio-system");
    expect(webhooksOf(mutatingWebhookConfiguration(canary))[0]?.clientConfig.url).toBe("https://host:15017/inject");
  });
});
