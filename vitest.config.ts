import { defineConfig } from "vitest/config";

/**
 * Tests that run Envoy or listen on ports are `slow`: they get time, and run one file at a time so that they do not disturb each other. Limits are there to
 * end what hangs: they say nothing of how long a test takes, which on a busy machine is many times as long as on an idle one.
 */
const SLOW = ["test/e2e/**/*.test.ts", "test/conformance/**/*.test.ts", "test/faults/**/*.test.ts", "test/cluster/**/*.test.ts"];

export default defineConfig({
  test: {
    projects: [
      {
        test: {
          name: "unit",
          include: ["src/**/*.test.ts", "test/**/*.test.ts", "tools/**/*.test.ts"],
          exclude: SLOW,
          testTimeout: 120_000,
          hookTimeout: 120_000,
          expect: { poll: { timeout: 60_000 } },
        },
      },
      { test: { name: "slow", include: SLOW, testTimeout: 300_000, hookTimeout: 300_000, fileParallelism: false } },
    ],
  },
});
