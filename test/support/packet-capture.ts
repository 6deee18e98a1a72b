import { spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { onTestFinished } from "vitest";
import type { MeshHost } from "./netns.ts";

/** What one end said on a connection, as the wire had it. */
export interface Flow {
  /** `address:port`. */
  readonly from: string;
  readonly to: string;
  readonly bytes: Buffer;
}

/** Listens on the wire of a host. */
export interface PacketCapture {
  /** Everything that passed between hosts so far, by connection and direction. */
  flows(): readonly Flow[];
  /** Forgets it. */
  clear(): void;
}

/** Sees what leaves and reaches a host, as somebody on the network would. Needs root and Python 3. */
export async function capturePackets({ enter }: MeshHost): Promise<PacketCapture> {
  const [command = "", ...words] = [...enter, "python3", join(import.meta.dirname, "packet-capture.py"), "eth0"];
  const child = spawn(command, words, { stdio: ["ignore", "pipe", "inherit"] });
  onTestFinished(() => void child.kill("SIGKILL"));
  const flows = new Map<string, { readonly from: string; readonly to: string; readonly parts: Buffer[] }>();
  const lines = createInterface({ input: child.stdout });
  await once(lines, "line");
  lines.on("line", (line) => {
    const [from = "", to = "", content = ""] = line.split(" ");
    const flow = flows.get(`${from} ${to}`) ?? { from, to, parts: [] };
    flows.set(`${from} ${to}`, flow);
    flow.parts.push(Buffer.from(content, "hex"));
  });
  return {
    flows: () => [...flows.values()].map(({ from, to, parts }) => ({ from, to, bytes: Buffer.concat(parts) })),
    clear: () => flows.clear(),
  };
}
