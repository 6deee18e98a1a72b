import { execFileSync, spawn } from "node:child_process";
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";

const ROOT = join(import.meta.dirname, "..");
const SOURCE = join(ROOT, "../shared/tools/xdsload");
const BINARY = join(ROOT, ".cache/xdsload");

/** First, middle and last of a set of times. */
export interface Spread {
  readonly n: number;
  readonly first_ms?: number;
  readonly p50_ms?: number;
  readonly p99_ms?: number;
  readonly last_ms?: number;
}

interface Received {
  readonly bytes: number;
  readonly messages: number;
}

/** One line of the load client, as far as it is read here. Which fields there are depends on `mode`. */
export interface LoadLine {
  readonly mode: string;
  readonly init_total_ms?: number;
  readonly srv_cpu_s?: number;
  readonly srv_cpu_until_init_s?: number;
  readonly srv_rss_phase_peak_mb?: number;
  readonly srv_rss_after_mb?: number;
  readonly srv_rss_mb?: number;
  readonly srv_cpu_s_per_change?: number;
  readonly median_last_ms?: number;
  readonly wall_s?: number;
  readonly iterations?: readonly {
    readonly others_touched?: number;
    readonly wall_s?: number;
    readonly received?: { readonly total?: Received };
  }[];
  readonly lag?: Spread;
  readonly drain_ms?: number;
  readonly resent?: { readonly total?: Received };
  readonly received?: { readonly total?: Received };
  readonly served?: Spread;
  readonly other_busy_cores?: number;
  readonly server?: {
    readonly send_cpu_s: number;
    readonly send_wall_s: number;
    readonly accept_cpu_s: number;
    readonly rss_peak_mb: number;
  };
  readonly all_received?: Spread;
  readonly csr_per_s?: number;
  readonly srv_cpu_ms_per_csr?: number;
  readonly latency?: Spread;
}

/** The load client that all control planes are measured with. It lies beside the project and is built once, with Go. */
export interface LoadClient {
  /** Writes a scene: `config/` for the server, templates of changes for the client. */
  generate(directory: string, shape: LoadShape): void;
  /** Runs it and gives its lines; `heard` is told of each as it comes. */
  run(command: string, args: readonly string[], heard?: (line: LoadLine) => void): Promise<readonly LoadLine[]>;
  /** Ends a server and starts it again. */
  readonly restartScript: string;
}

export interface LoadShape {
  readonly services: number;
  readonly endpoints: number;
  readonly virtualServices: number;
  readonly destinationRules: number;
  readonly namespaces: number;
  readonly proxies: number;
  readonly classes: number;
}

/** Finds and builds the client; throws a sentence where that cannot be done. */
export function loadClient(): LoadClient {
  if (!existsSync(SOURCE)) throw new Error("comparing with a peer needs ../shared/tools/xdsload beside the project, which is not there");
  mkdirSync(join(ROOT, ".cache"), { recursive: true });
  const env = { ...process.env, GOSUMDB: "off", GOFLAGS: "-mod=mod" };
  execFileSync("go", ["build", "-overlay", tokenOfEach(), "-o", BINARY, "."], { cwd: SOURCE, env, stdio: ["ignore", "ignore", "inherit"] });
  return {
    restartScript: join(SOURCE, "restart.sh"),
    generate(directory, shape) {
      const options = {
        services: shape.services,
        endpoints: shape.endpoints,
        vs: shape.virtualServices,
        dr: shape.destinationRules,
        namespaces: shape.namespaces,
        proxies: shape.proxies,
        classes: shape.classes,
      };
      const flags = Object.entries(options).flatMap(([name, value]) => [`--${name}`, String(value)]);
      execFileSync(BINARY, ["gen", "--out", directory, ...flags], { stdio: ["ignore", "ignore", "inherit"] });
    },
    run: (command, args, heard) => linesOf([command, ...args], heard),
  };
}

/** The client, if it lies beside the project and can be built. */
export function foundLoadClient(): LoadClient | undefined {
  try {
    return loadClient();
  } catch {
    return undefined;
  }
}

/** Where the client reads the token of a proxy, and what it reads instead. */
const ONE_TOKEN = "os.ReadFile(o.token)";
const OWN_TOKEN = 'os.ReadFile(strings.NewReplacer("{{NS}}", ns, "{{SA}}", sa).Replace(o.token))';

/**
 * The client has one token text for all proxies, in which their namespace and account can be filled in. That is enough for servers that take any text, but not for
 * signed tokens: so that each proxy can have its own, both can be filled in in the name of the file too. Gives the list of files that the compiler is to take
 * in place of others; the client's source stays as it is.
 */
function tokenOfEach(): string {
  const source = join(SOURCE, "client.go");
  const text = readFileSync(source, "utf8");
  if (!text.includes(ONE_TOKEN)) throw new Error(`${source} no longer has ${ONE_TOKEN}: say in bench/xdsload.ts where it reads tokens now`);
  const [changed, overlay] = [join(ROOT, ".cache/xdsload-client.go"), join(ROOT, ".cache/xdsload-overlay.json")];
  writeFileSync(changed, text.replace(ONE_TOKEN, OWN_TOKEN));
  writeFileSync(overlay, JSON.stringify({ Replace: { [source]: changed } }));
  return overlay;
}

async function linesOf(args: readonly string[], heard: (line: LoadLine) => void = () => {}): Promise<readonly LoadLine[]> {
  const env = { ...process.env, XDS_DEPS: join(ROOT, "node_modules") };
  const child = spawn(BINARY, args, { cwd: ROOT, env, stdio: ["ignore", "pipe", "ignore"] });
  const ended = new Promise<number | null>((resolve) => child.once("close", resolve));
  const lines: LoadLine[] = [];
  for await (const line of createInterface({ input: child.stdout })) {
    if (!line.startsWith("{")) continue;
    const said = JSON.parse(line) as LoadLine;
    lines.push(said);
    heard(said);
  }
  const status = await ended;
  if (status !== 0) throw new Error(`xdsload ${args.join(" ")} ended with status ${status}`);
  return lines;
}
