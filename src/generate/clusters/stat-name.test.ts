import { describe, expect, it } from "vitest";
import { type StatNameParts, statName } from "./stat-name.ts";

const parts = (source: "Kubernetes" | "External"): StatNameParts => ({
  service: { host: "web.shop.svc.cluster.local", name: "web", namespace: "shop", source },
  subset: "v1",
  port: { name: "http", number: 80 },
  targetPort: 8080,
});

describe("names in statistics", () => {
  it.each([
    ["%SERVICE%", "Kubernetes", "web.shop;"],
    ["%SERVICE%", "External", "web.shop.svc.cluster.local;"],
    ["%SERVICE_NAME%|%SERVICE_FQDN%", "Kubernetes", "web|web.shop.svc.cluster.local;"],
    ["%SERVICE_PORT%_%SERVICE_PORT_NAME%_%TARGET_PORT%_%SUBSET_NAME%", "Kubernetes", "80_http_8080_v1;"],
    ["plain_%UNKNOWN%", "Kubernetes", "plain_%UNKNOWN%;"],
  ] as const)("%s of a service of %s", (pattern, source, name) => expect(statName(pattern, parts(source))).toBe(name));
});
