import { expect, it } from "vitest";
import { createMetrics } from "./metrics.ts";

it("counts what is judged by the kinds there are, whatever kinds a caller makes up", async () => {
  const metrics = createMetrics("1.0.0");
  const judge = (group: string, version: string, kind: string): void => metrics.webhooks.validated({ group, version, kind }, undefined);
  judge("networking.istio.io", "v1", "VirtualService");
  judge("networking.istio.io", "v9", "VirtualService");
  const letters = "abcdefghijklmnopqrstuvwxyz";
  for (const a of letters) for (const b of letters) judge("security.istio.io", `v1${a}${b}`, `Made${a}${b}`);
  const lines = (await metrics.text()).split("\n").filter((line) => line.startsWith("galley_validation_passed{"));
  expect(lines.sort()).toEqual([
    'galley_validation_passed{group="networking.istio.io",version="other",resource="VirtualService"} 1',
    'galley_validation_passed{group="networking.istio.io",version="v1",resource="VirtualService"} 1',
    'galley_validation_passed{group="other",version="other",resource="other"} 676',
  ]);
});
