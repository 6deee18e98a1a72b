import type { ChurnPace } from "./churn.ts";
import type { SceneShape } from "./scene.ts";

/** How much is measured: the size of the mesh, and how often each thing is repeated. */
export interface Extent {
  readonly shape: Omit<SceneShape, "classes">;
  /** Numbers of classes that the same number of proxies is divided into. */
  readonly classes: readonly number[];
  /** The mesh of the figures beside a peer, and the smaller one that is restarted, so many times. */
  readonly large: SceneShape;
  readonly restarted: { readonly shape: SceneShape; readonly restarts: number };
  readonly starts: number;
  readonly changes: number;
  /** How changes are made that do not wait for one another. */
  readonly churn: ChurnPace;
  /** How long certificates are asked for, to how many proxies in how many classes a change goes meanwhile, and whether the load client asks, where it can be had. */
  readonly signing: { readonly seconds: number; readonly proxies: number; readonly classes: number; readonly loadClient: boolean };
}

/** The scene that the limits are about. */
export const FULL: Extent = {
  shape: { services: 1000, endpoints: 10, namespaces: 20, virtualServices: 200, destinationRules: 200, proxies: 200 },
  classes: [1, 20],
  large: { services: 1000, endpoints: 10, namespaces: 50, virtualServices: 200, destinationRules: 200, proxies: 500, classes: 50 },
  restarted: {
    shape: { services: 500, endpoints: 5, namespaces: 20, virtualServices: 100, destinationRules: 100, proxies: 200, classes: 20 },
    restarts: 5,
  },
  starts: 5,
  changes: 5,
  churn: { rate: 5, seconds: 10 },
  signing: { seconds: 10, proxies: 500, classes: 50, loadClient: true },
};

/** Just large enough that every measurement has something to measure: for a test of the bench itself. */
export const QUICK: Extent = {
  shape: { services: 40, endpoints: 3, namespaces: 4, virtualServices: 8, destinationRules: 8, proxies: 8 },
  classes: [2],
  large: { services: 40, endpoints: 3, namespaces: 4, virtualServices: 8, destinationRules: 8, proxies: 12, classes: 4 },
  restarted: {
    shape: { services: 20, endpoints: 3, namespaces: 2, virtualServices: 4, destinationRules: 4, proxies: 8, classes: 2 },
    restarts: 1,
  },
  starts: 1,
  changes: 1,
  churn: { rate: 5, seconds: 2 },
  signing: { seconds: 0.5, proxies: 8, classes: 2, loadClient: false },
};
