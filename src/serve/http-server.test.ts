import { type IncomingMessage, request } from "node:http";
import type { AddressInfo } from "node:net";
import { assert, describe, it, onTestFinished } from "vitest";
import { eventually } from "../../test/support/wait.ts";
import { systemClock } from "../base/clock.ts";
import { type Log, silentLog } from "../base/log.ts";
import { nextTurn } from "../base/slice.ts";
import type { HttpRoute } from "../debug/http-route.ts";
import { listenHttp } from "./http-server.ts";

const TOKEN = "the-debug-token";
const NAMESPACES: Readonly<Record<string, string>> = { "Bearer own": "istio-system", "Bearer shop": "shop" };

const page = (path: string, body: unknown, more: Partial<HttpRoute> = {}): HttpRoute => ({
  path,
  open: false,
  about: "",
  answer: (_query, sent) => ({ status: 200, body: sent === undefined ? body : { sent } }),
  ...more,
});

async function serve(routes: readonly HttpRoute[], log: Log = silentLog) {
  const callers = { ownNamespace: "istio-system", namespaceOf: async (header: string) => NAMESPACES[header] };
  const server = await listenHttp({
    ...{ host: "127.0.0.1", port: 0, routes, debugToken: TOKEN, callers, allowedHosts: [], clock: systemClock, log },
  });
  onTestFinished(() => void server.close());
  const { port } = server.address() as AddressInfo;
  return (path: string, token = TOKEN, init: RequestInit = {}): Promise<Response> =>
    fetch(`http://127.0.0.1:${port}${path}`, { ...init, headers: { authorization: `Bearer ${token}`, ...init.headers } });
}

describe("listenHttp", () => {
  it("gives pages that act to who has the token, and to nobody who may only look", async () => {
    const ask = await serve([page("/look", 1), page("/act", 2, { acts: true }), page("/do", 3, { method: "POST" })]);
    const statuses = async (path: string, init: RequestInit = {}): Promise<readonly number[]> =>
      Promise.all([TOKEN, "own", "shop", "stranger"].map(async (token) => (await ask(path, token, init)).status));
    assert.deepEqual(await statuses("/look"), [200, 200, 403, 401]);
    assert.deepEqual(await statuses("/act"), [200, 403, 403, 401]);
    assert.deepEqual(await statuses("/do", { method: "POST" }), [200, 403, 403, 401]);
    assert.deepEqual(await statuses("/do"), [405, 405, 405, 405]);
  });

  it("takes a POST without a body, one of JSON, and no other", async () => {
    const ask = await serve([page("/do", 1, { method: "POST" })]);
    const sent = async (init: RequestInit): Promise<unknown> => {
      const answer = await ask("/do", TOKEN, { method: "POST", ...init });
      return answer.ok ? answer.json() : answer.status;
    };
    assert.deepEqual(await sent({}), { sent: null });
    assert.deepEqual(await sent({ body: '{"a": 1}', headers: { "content-type": "application/json" } }), { sent: { a: 1 } });
    assert.equal(await sent({ body: '{"a": 1}', headers: { "content-type": "text/plain" } }), 400);
  });

  it("sends a large page whole and in pieces, and others have their turn meanwhile", async () => {
    const entry = { labels: { app: "x".repeat(100) }, list: [1, 2, 3] };
    let turn = 0;
    const turns = new Set<number>();
    const entries = function* () {
      for (let n = 0; n < 60_000; n++) {
        turns.add(turn);
        yield { n, ...entry };
      }
    };
    const ask = await serve([page("/large", { list: entries() })]);
    const asked = ask("/large").then((answer) => answer.json() as Promise<{ readonly list: readonly { readonly n: number }[] }>);
    const counting = new AbortController();
    void (async () => {
      for (; !counting.signal.aborted; turn++) await nextTurn();
    })();
    const { list } = await asked.finally(() => counting.abort());
    assert.equal(list.length, 60_000);
    assert.deepEqual(list.at(-1), { n: 59_999, ...entry });
    assert.isAbove(turns.size, 10);
  });

  it("says that a page failed, and cuts off one that fails on the way; neither costs more than that page, nor shows a token", async () => {
    const logged: string[] = [];
    const log = { ...silentLog, error: (...words: unknown[]) => void logged.push(JSON.stringify(words)) } as Log;
    const failing = (after: number) => ({
      *[Symbol.iterator]() {
        for (let n = 0; n < after; n++) yield "x".repeat(1_000);
        throw new Error("broken");
      },
    });
    const ask = await serve([page("/early", failing(1)), page("/late", failing(1_000)), page("/good", [1])], log);
    assert.equal((await ask(`/early?token=${TOKEN}`)).status, 500);
    const late = await ask("/late");
    assert.equal(late.status, 200);
    const cut = await late.text().then(
      () => "whole",
      () => "cut off",
    );
    assert.equal(cut, "cut off");
    assert.deepEqual(await (await ask("/good")).json(), [1]);
    assert.equal(logged.length, 2);
    assert.notInclude(logged.join(), TOKEN);
  });

  it("tells a stranger who asks for what is no path that it is none, and the log nothing", async () => {
    const lines: unknown[] = [];
    const log = { ...silentLog, error: (...line: readonly unknown[]) => void lines.push(line) };
    const server = await listenHttp({
      ...{ host: "127.0.0.1", port: 0, routes: [page("/look", 1)], debugToken: TOKEN, allowedHosts: [], clock: systemClock, log },
    });
    onTestFinished(() => void server.close());
    const { port } = server.address() as AddressInfo;
    for (const path of ["//[", "http://["]) {
      const response = await new Promise<IncomingMessage>((resolve, reject) => {
        request({ host: "127.0.0.1", port, path, agent: false }, resolve).on("error", reject).end();
      });
      response.resume();
      assert.equal(response.statusCode, 400);
    }
    assert.deepEqual(lines, []);
  });

  it("stops making a page that nobody reads any more", async () => {
    let made = 0;
    let gaveUp = false;
    const endless = {
      *[Symbol.iterator]() {
        try {
          for (;;) {
            made += 1;
            yield "x".repeat(10_000);
          }
        } finally {
          gaveUp = true;
        }
      },
    };
    const routes = [page("/endless", endless, { open: true })];
    const server = await listenHttp({
      ...{ host: "127.0.0.1", port: 0, routes, debugToken: TOKEN, allowedHosts: [], clock: systemClock, log: silentLog },
    });
    onTestFinished(() => void server.close());
    const { port } = server.address() as AddressInfo;
    const response = await new Promise<IncomingMessage>((resolve, reject) => {
      request({ host: "127.0.0.1", port, path: "/endless" }, resolve).on("error", reject).end();
    });
    response.on("error", () => {});
    response.destroy();
    await eventually("nothing more is made", () => gaveUp);
    assert.isAbove(made, 0);
  });
});
