import type { IncomingMessage } from "node:http";
import { request as requestPlain } from "node:http";
import { request } from "node:https";
import { getCACertificates } from "node:tls";
import { isBlockedAddress } from "../base/blocked-address.ts";
import { NO_PROXIES, type ProxyRules } from "../base/environment-proxy.ts";
import { wayTo } from "../base/way-to.ts";

/** Gets a small document over the network; rejects with a sentence. */
export type FetchText = (url: string, timeoutMs?: number) => Promise<string>;

export interface FetchTextOptions {
  /** URLs with `http:` are fetched too. */
  readonly plain?: boolean;
  /** Which addresses are not called; by default those of this machine, its links and of metadata services. */
  readonly isBlocked?: (address: string) => boolean;
  /** Roots in PEM that servers may be verified with besides the platform's; asked at each fetch. */
  readonly moreRoots?: () => Promise<string | undefined>;
  /** Proxies of the environment. */
  readonly proxies?: ProxyRules;
}

const LARGEST = 1024 * 1024;
const TIMEOUT_MS = 5_000;

/**
 * Makes something that gets documents. The addresses a name stands for are judged in the look-up that the connection itself uses, so they cannot
 * change in between; redirects are not followed, since they would lead where nobody looked.
 */
export function createFetchText(given: FetchTextOptions): FetchText {
  const { plain = false, isBlocked = isBlockedAddress, moreRoots, proxies = NO_PROXIES } = given;
  return async (url, timeoutMs = TIMEOUT_MS) => {
    if (!URL.canParse(url)) throw new Error(`${url} is not a URL`);
    const { protocol } = new URL(url);
    if (protocol !== "https:" && !(plain && protocol === "http:")) throw new Error(`${url} is not an https URL`);
    const way = await wayTo(new URL(url), { proxies, isBlocked });
    const roots = await moreRoots?.();
    const signal = AbortSignal.timeout(timeoutMs);
    const options = { ...way, signal };
    const ask = protocol === "https:" ? request : requestPlain;
    return new Promise((resolve, reject) => {
      const failed = (error: unknown): void => reject(signal.aborted ? new Error(`${url} does not answer in time`) : error);
      const take = (response: IncomingMessage): void => {
        if (response.statusCode === 200) readAll(response, url).then(resolve, failed);
        else reject(new Error(`${url} answers with status ${response.statusCode ?? 0}`));
        if (response.statusCode !== 200) outgoing.destroy();
      };
      const outgoing = ask(url, { ...options, ...(roots !== undefined && { ca: [...getCACertificates("default"), roots] }) }, take);
      outgoing.on("error", failed).end();
    });
  };
}

function readAll(response: IncomingMessage, url: string): Promise<string> {
  return new Promise((resolve, reject) => {
    const pieces: Buffer[] = [];
    let size = 0;
    response.on("data", (piece: Buffer) => {
      size += piece.length;
      if (size > LARGEST) response.destroy(new Error(`${url} answers with more than ${LARGEST} bytes`));
      else pieces.push(piece);
    });
    response.on("end", () => resolve(Buffer.concat(pieces).toString("utf8")));
    response.on("error", reject);
  });
}
