import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { afterEach, describe, expect, it } from "vitest";
import type { CommandHost } from "./commands.ts";
import { requestCommand, waitCommand } from "./local-commands.ts";

let server: Server | undefined;
afterEach(() => void server?.close());

async function serve(answers: readonly number[], seen: string[] = []): Promise<number> {
  let asked = 0;
  const made = createServer((request, response) => {
    seen.push(`${request.method} ${request.url}`);
    response.writeHead(answers[Math.min(asked++, answers.length - 1)] ?? 200).end("said\n");
  });
  server = made;
  await new Promise<void>((resolve) => made.listen(0, "localhost", resolve));
  return (made.address() as AddressInfo).port;
}

const hostOf = (printed: string[]): CommandHost => ({ print: (text: string) => void printed.push(text) }) as unknown as CommandHost;

describe("wait", () => {
  it("ends when the proxy is ready", async () => {
    const seen: string[] = [];
    const port = await serve([503, 503, 200], seen);
    const flags = [`--url=http://localhost:${port}/healthz/ready`, "--periodMillis=1"];
    expect(await waitCommand(flags, hostOf([]))).toBe(0);
    expect(seen).toEqual(Array.from({ length: 3 }, () => "GET /healthz/ready"));
  });

  it("gives up in time, and says why", async () => {
    const printed: string[] = [];
    const port = await serve([503]);
    expect(await waitCommand([`--url=http://localhost:${port}/`, "--timeoutSeconds=0", "--periodMillis=1"], hostOf(printed))).toBe(1);
    expect(printed).toEqual(["the proxy is not ready after 0 s: it answers with 503\n"]);
    await expect(waitCommand(["--timeoutSeconds=soon"], hostOf([]))).rejects.toThrow(/"soon" is not a whole number/);
  });
});

describe("request", () => {
  it("asks what it is told, and fails where the answer does", async () => {
    const seen: string[] = [];
    const printed: string[] = [];
    const port = await serve([200, 404], seen);
    expect(await requestCommand([`--debug-port=${port}`, "POST", "drain"], hostOf(printed))).toBe(0);
    expect(await requestCommand([`--debug-port=${port}`, "get", "/nothing"], hostOf(printed))).toBe(1);
    expect([seen, printed]).toEqual([
      ["POST /drain", "GET /nothing"],
      ["said\n", "said\n"],
    ]);
    await expect(requestCommand(["GET"], hostOf([]))).rejects.toThrow(/a method and a path/);
  });
});
