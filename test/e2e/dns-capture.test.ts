import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { chmod, copyFile, link, mkdir, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { describe, expect, it, onTestFinished } from "vitest";
import { findEnvoy } from "../../src/agent/find-envoy.ts";
import { startAgentProcess } from "../support/agent.ts";
import { meshBelieving, tokenFor } from "../support/agent-mesh.ts";
import { tempDir } from "../support/cleanup.ts";
import { rootOf } from "../support/identity.ts";
import { startIstiod } from "../support/istiod.ts";
import { hostsImpossible, type MeshHost, startHosts } from "../support/netns.ts";
import { startRelay } from "../support/relay.ts";
import { createIssuer } from "../support/tokens.ts";
import { eventually } from "../support/wait.ts";

const ISTIOD_PORT = 15_012;

const SERVICE = `
apiVersion: v1
kind: Service
metadata: {name: web, namespace: shop}
spec: {clusterIP: 10.96.0.30, ports: [{name: http, port: 80}]}
`;

/** Starts a program on a host; resolves when it says something, and gives all that it has said so far. */
async function startOn({ enter }: MeshHost, ...program: readonly string[]): Promise<() => string> {
  const [command = "", ...words] = [...enter, process.execPath, ...program];
  const child = spawn(command, words, { stdio: ["ignore", "pipe", "inherit"] });
  onTestFinished(() => void child.kill("SIGKILL"));
  let said = "";
  child.stdout.on("data", (text: Buffer) => (said += text.toString()));
  await once(child.stdout, "data");
  return () => said;
}

/** A name server of the network, which knows one name and writes down what it is asked. */
function startNameServer(host: MeshHost): Promise<() => string> {
  const dns = join(import.meta.dirname, "../../src/agent/dns");
  const script = `
    import { startDnsServer } from "${dns}/dns-server.ts";
    import { readQuery, writeAnswer } from "${dns}/dns-message.ts";
    await startDnsServer({ addresses: ["0.0.0.0"], port: 53, log: console, async resolve(message, transport) {
      const query = readQuery(message);
      console.log(transport, query.question.name);
      const known = query.question.name === "www.outside.example";
      const records = known && query.question.type === 1 ? [{ type: "A", name: query.question.name, ttl: 5, address: Uint8Array.of(192, 0, 2, 7) }] : [];
      return writeAnswer(query, { rcode: known ? 0 : 3, authoritative: true, records }, 512);
    } });
    console.log("listening");`;
  return startOn(host, "--input-type=module", "-e", script);
}

/** Programs that are started on the host from now on ask this server for names. */
async function setResolver({ enter }: MeshHost, server: string): Promise<void> {
  const directory = join("/etc/netns", enter.at(-1) ?? "");
  await mkdir(directory, { recursive: true });
  onTestFinished(() => rm(directory, { recursive: true }));
  await writeFile(join(directory, "resolv.conf"), `nameserver ${server}\nsearch shop.svc.cluster.local\noptions ndots:5 timeout:5\n`);
}

/** Asks the way programs do, through the C library. */
async function lookUp({ enter }: MeshHost, name: string, options = ""): Promise<string> {
  const [command = "", ...words] = [...enter, "getent", "ahostsv4", name];
  const { stdout } = await promisify(execFile)(command, words, { env: { ...process.env, RES_OPTIONS: options } });
  return stdout.split(" ")[0] ?? "";
}

const impossible = hostsImpossible();
if (impossible !== undefined) console.warn(`capture of DNS is not tested: ${impossible}`);

describe.skipIf(impossible !== undefined)("names that programs ask for", () => {
  it("are answered by the agent where they are the mesh's, and by the network's server otherwise", async () => {
    const issuer = createIssuer("https://id.example.com");
    const { client, names } = await startHosts(["client", "names"], { flags: null });
    const asked = await startNameServer(names);
    await setResolver(client, names.address);
    expect(await client.iptables("--redirect-dns")).toBe("The rules are in force.\n");

    const istiod = await startIstiod({ files: { "mesh.yaml": meshBelieving(issuer), "conf/web.yaml": SERVICE } });
    const shared = await tempDir();
    await startRelay({ to: istiod.securePort, at: join(shared, "istiod") });
    await link(findEnvoy(process.env), join(shared, "envoy")).catch(() => copyFile(findEnvoy(process.env), join(shared, "envoy")));
    await chmod(shared, 0o755);
    await startOn(client, join(import.meta.dirname, "../support/socket-relay.ts"), String(ISTIOD_PORT), join(shared, "istiod"));
    const { statusPort } = await startAgentProcess({
      name: "client",
      serviceAccount: "client",
      address: client.address,
      istiod: `127.0.0.1:${ISTIOD_PORT}`,
      root: await rootOf(istiod),
      token: tokenFor(issuer, "client"),
      host: client,
      env: { ENVOY_PATH: join(shared, "envoy"), ISTIO_META_INTERCEPTION_MODE: "REDIRECT", ISTIO_META_DNS_CAPTURE: "true" },
    });

    // Names come on a way of their own, after Envoy's configuration perhaps.
    const table = { url: `http://127.0.0.1:${statusPort}/debug/ndsz` };
    await eventually("names have come", async () => (await client.ask("fetch", table)).includes("web.shop"));

    for (const name of ["web", "web.shop", "web.shop.svc", "web.shop.svc.cluster.local"])
      expect(await lookUp(client, name), name).toBe("10.96.0.30");
    expect(await lookUp(client, "web.shop", "use-vc")).toBe("10.96.0.30");
    expect(asked()).not.toContain("web");
    expect(await lookUp(client, "www.outside.example")).toBe("192.0.2.7");
    expect(await lookUp(client, "www.outside.example", "use-vc")).toBe("192.0.2.7");
    for (const way of ["udp", "tcp"]) await eventually(`it was asked over ${way}`, () => asked().includes(`${way} www.outside.example\n`));
    await expect(lookUp(client, "nobody.example")).rejects.toMatchObject({ code: 2 });

    // Without rules programs ask the server itself, which knows nothing of the mesh.
    await client.iptables("clean");
    await expect(lookUp(client, "web.shop")).rejects.toMatchObject({ code: 2 });
    await eventually("it was asked", () => asked().includes("web.shop"));
  });
});
