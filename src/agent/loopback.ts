import type { LookupFunction } from "node:net";

/** Loopback of both families, without asking anybody for a name: what listens on one of them only is found too. */
export const loopback: LookupFunction = (_, __, done) =>
  done(null, [
    { address: "127.0.0.1", family: 4 },
    { address: "::1", family: 6 },
  ]);
