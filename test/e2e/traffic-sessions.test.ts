import { describe, expect, it } from "vitest";
import { call } from "../support/calls.ts";
import { httpEcho } from "../support/echo.ts";
import { startIstiod } from "../support/istiod.ts";
import { freePort } from "../support/ports.ts";
import { listening, startProxy } from "../support/proxy.ts";
import { eventually } from "../support/wait.ts";

interface Server {
  readonly port: number;
  readonly draining?: boolean;
}

const service = (
  name: string,
  label: string,
  { port, servers }: { readonly port: number; readonly servers: readonly Server[] },
): string => `
---
apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: {name: ${name}, namespace: shop, labels: {${label}}}
spec:
  hosts: [${name}.example.com]
  location: MESH_INTERNAL
  resolution: STATIC
  ports: [{number: ${port}, name: http, protocol: HTTP}]
  endpoints: [${servers
    .map((one) => `{address: 127.0.0.1, ports: {http: ${one.port}}, labels: {${one.draining ? 'istio.io/draining: "yes"' : ""}}}`)
    .join(", ")}]
`;

const COOKIE = '"istio.io/persistent-session": "stick:/"';
const HEADER = '"istio.io/persistent-session-header": x-stick';

describe("sessions", () => {
  it("keep clients at the server that answered them first, also while it drains", async () => {
    const [a, b] = [await httpEcho("a"), await httpEcho("b")];
    const port = await freePort();
    const config = (draining: boolean): string => {
      const servers = [{ port: a.port }, { port: b.port, draining }];
      return (
        service("cookie", COOKIE, { port, servers }) +
        service("header", HEADER, { port, servers }) +
        service("plain", "", { port, servers })
      );
    };
    const istiod = await startIstiod({
      files: { "conf/all.yaml": config(false) },
      env: { PILOT_ENABLE_PERSISTENT_SESSION_FILTER: "true" },
    });
    const proxy = await startProxy({ xdsPort: istiod.grpcPort, name: "client", address: "127.0.0.9" });
    await listening(port);

    /** Calls until `by` answers, and gives what leads back to it. */
    const sessionWith = (by: string, host: string, carrier: "set-cookie" | "x-stick"): Promise<string> =>
      eventually(`${by} answers for ${host}`, async () => {
        const answer = await call({ port, host });
        const [sign] = [answer.headers[carrier] ?? []].flat();
        return answer.by === by && sign?.split(";", 1)[0];
      });
    const cookies = {
      a: await sessionWith("a", "cookie.example.com", "set-cookie"),
      b: await sessionWith("b", "cookie.example.com", "set-cookie"),
    };
    const headers = {
      a: await sessionWith("a", "header.example.com", "x-stick"),
      b: await sessionWith("b", "header.example.com", "x-stick"),
    };
    const keptAt = async (by: "a" | "b"): Promise<void> => {
      for (let made = 0; made < 6; made++) {
        expect((await call({ port, host: "cookie.example.com", headers: { cookie: cookies[by] } })).by).toBe(by);
        expect((await call({ port, host: "header.example.com", headers: { "x-stick": headers[by] } })).by).toBe(by);
      }
    };
    await keptAt("a");
    await keptAt("b");

    await istiod.write("conf/all.yaml", config(true));
    await eventually("nobody new is sent to b", async () => {
      const names = await Promise.all(Array.from({ length: 12 }, async () => (await call({ port, host: "cookie.example.com" })).by));
      return names.every((by) => by === "a");
    });
    await keptAt("a");
    await keptAt("b");
    const plain = await Promise.all(Array.from({ length: 12 }, async () => (await call({ port, host: "plain.example.com" })).by));
    expect(new Set(plain)).toEqual(new Set(["a"]));
    expect((await call({ port, host: "plain.example.com" })).headers).not.toHaveProperty("set-cookie");
    await proxy.assertNothingRejected();
  });
});
