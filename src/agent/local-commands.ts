import { parseArgs } from "node:util";
import { systemClock } from "../base/clock.ts";
import { EdgeError, firstSentenceOf, messageOf } from "../base/errors.ts";
import type { Command } from "./commands.ts";
import { request } from "./node-http.ts";

const READY_URL = "http://localhost:15021/healthz/ready";
const ADMIN_PORT = "15000";

/**
 * `wait`: ends when the proxy is ready, so that the application starts after it (`holdApplicationUntilProxyStarts`); with status 1 where it is not in time.
 */
export const waitCommand: Command = async (args, { print }) => {
  const { values } = parsed(args, {
    url: { type: "string", default: READY_URL },
    timeoutSeconds: { type: "string", default: "60" },
    periodMillis: { type: "string", default: "500" },
    requestTimeoutMillis: { type: "string", default: "500" },
  });
  const deadline = systemClock.monotonic() + number(values.timeoutSeconds) * 1_000;
  for (;;) {
    const reason = await ask({ url: String(values.url), method: "GET", timeoutMs: number(values.requestTimeoutMillis) }).then(
      ({ status }) => (status === 200 ? undefined : `it answers with ${status}`),
      messageOf,
    );
    if (reason === undefined) return 0;
    if (systemClock.monotonic() >= deadline) {
      print(`the proxy is not ready after ${values.timeoutSeconds} s: ${reason}\n`);
      return 1;
    }
    await systemClock.sleep(number(values.periodMillis));
  }
};

/** `request [--debug-port PORT] METHOD PATH`: asks Envoy's admin interface, or the agent itself, and prints the answer. */
export const requestCommand: Command = async (args, { print }) => {
  const { values, positionals } = parsed(args, { "debug-port": { type: "string", default: ADMIN_PORT } });
  const [method = "", path = "", body = "", more] = positionals;
  if (method === "" || path === "" || more !== undefined) throw new EdgeError("usage", "a method and a path are needed, such as GET stats");
  const port = number(values["debug-port"]);
  const url = `http://localhost:${port}/${path.replace(/^\//, "")}`;
  const answer = await ask({ url, method: method.toUpperCase(), timeoutMs: 60_000, body }).catch((error: unknown) => {
    throw new EdgeError("control_plane_unreachable", `nobody answers on port ${port}: ${messageOf(error)}`);
  });
  print(answer.text);
  return answer.status >= 200 && answer.status < 300 ? 0 : 1;
};

type Options = NonNullable<NonNullable<Parameters<typeof parseArgs>[0]>["options"]>;

function parsed(args: readonly string[], options: Options) {
  try {
    return parseArgs({ args: [...args], options, strict: true, allowPositionals: true });
  } catch (error) {
    throw new EdgeError("usage", firstSentenceOf(error));
  }
}

function number(value: unknown): number {
  if (typeof value === "string" && /^\d{1,9}$/.test(value)) return Number(value);
  throw new EdgeError("usage", `${JSON.stringify(value)} is not a whole number`);
}

interface Question {
  readonly url: string;
  readonly method: string;
  readonly timeoutMs: number;
  readonly body?: string;
}

function ask({ url, method, timeoutMs, body = "" }: Question): Promise<{ readonly status: number; readonly text: string }> {
  return new Promise((resolve, reject) => {
    const sent = request(url, { method, agent: false, timeout: timeoutMs }, (response) => {
      let text = "";
      response.setEncoding("utf8").on("data", (part: string) => {
        text += part;
      });
      response.on("end", () => resolve({ status: response.statusCode ?? 0, text })).on("error", reject);
    });
    sent.on("timeout", () => sent.destroy(new Error("no answer in time")));
    sent.on("error", reject).end(body);
  });
}
