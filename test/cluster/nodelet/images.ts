import { join } from "node:path";
import { findEnvoy } from "../../../src/agent/find-envoy.ts";
import { findIptables } from "../../support/iptables.ts";
import { programArgs } from "../../support/program-args.ts";
import type { Image } from "./image.ts";

const root = join(import.meta.dirname, "../../..");
const NODE = "/usr/local/bin/node";
/** Whoever a container runs as must be able to read its programs, wherever this machine keeps them. */
const node = { [NODE]: process.execPath };

/** Servers that tell what reached them; see programs/echo-program.ts for its flags. It listens for HTTP on 8080 where no flags are given. */
export const echoImage: Image = {
  entrypoint: [NODE, "/opt/istio/test/cluster/nodelet/programs/echo-program.ts"],
  args: ["--http", "8080"],
  files: { ...node, "/opt/istio": root },
};

/** Does nothing until it is ended: for pods that are only to call others. */
export const idleImage: Image = {
  entrypoint: ["sh", "-c", "trap 'exit 0' TERM; while :; do sleep 1000 & wait $!; done"],
};

/** A program of `dist/`, with Envoy and iptables where Istio's images have them. */
export function programImage(program: "istio-agent" | "istiod" | "istiod-vm" | "istioctl"): Image {
  const iptables = findIptables();
  return {
    entrypoint: [NODE, ...programArgs(program, { dist: join(root, "dist"), seenAs: "/opt/istio/dist" })],
    env: { ENVOY_PATH: "/usr/local/bin/envoy", ...(typeof iptables === "string" ? {} : iptables) },
    files: {
      ...node,
      "/opt/istio/dist": join(root, "dist"),
      "/usr/local/bin/envoy": findEnvoy(process.env),
      ...(program === "istio-agent" && { "/usr/local/bin/pilot-agent": join(import.meta.dirname, "programs/pilot-agent.sh") }),
    },
    ...(program === "istiod" && { user: 1337, group: 1337 }),
  };
}
