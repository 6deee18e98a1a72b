import { defineConfig } from "vitest/config";

/** Tests that run Envoy or listen on ports are `slow`: they get time, and run one file at a time so that they do not disturb each other. */
const SLOW = ["test/e2e/**/*.test.ts", "test/conformance/**/*.test.ts", "test/faults/**/*.test.ts", "test/cluster/**/*.test.ts"];

export default defineConfig({
  test: {
    projects: [
      {
        test: {
          name: "unit",
          include: ["src/**/*.test.ts", "test/**/*.test.ts", "tools/**/*.test.ts"],
          exclude: SLOW,
          testTimeout: 30_000,
        },
      },
      { test: { name: "slow", include: SLOW, testTimeout: 120_000, hookTimeout: 120_000, fileParallelism: false } },
    ],
  },
});
