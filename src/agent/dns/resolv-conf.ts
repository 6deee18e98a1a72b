import { readFile } from "node:fs/promises";
import { isIP } from "node:net";

/** What the machine's resolv.conf says. */
export interface ResolvConf {
  /** Addresses of servers. */
  readonly servers: readonly string[];
  /** Domains that programs append to short names, without a dot at the end. */
  readonly search: readonly string[];
}

/** Reads the text of a resolv.conf; lines that mean nothing are passed over, as resolvers do. The last `search` or `domain` counts. */
export function parseResolvConf(text: string): ResolvConf {
  const servers: string[] = [];
  let search: readonly string[] = [];
  for (const line of text.split("\n")) {
    const [word, ...rest] = line
      .replace(/[#;].*$/, "")
      .trim()
      .split(/\s+/);
    const [first = ""] = rest;
    if (word === "nameserver" && isIP(first) !== 0) servers.push(first);
    else if (word === "search" || word === "domain")
      search = rest.map((domain) => domain.toLowerCase().replace(/\.$/, "")).filter((domain) => domain !== "");
  }
  return { servers, search };
}

/** One that cannot be read says nothing. */
export const readResolvConf = async (file: string): Promise<ResolvConf> => parseResolvConf(await readFile(file, "utf8").catch(() => ""));
