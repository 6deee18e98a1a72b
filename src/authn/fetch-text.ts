import { lookup } from "node:dns";
import { request } from "node:https";
import { isIP, type LookupFunction } from "node:net";
import { isBlockedAddress } from "./blocked-address.ts";

/** Gets a small document over the network; rejects with a sentence. */
export type FetchText = (url: string) => Promise<string>;

const LARGEST = 1024 * 1024;
const TIMEOUT_MS = 5_000;

/**
 * Gets a document over https. The addresses a name stands for are judged in the look-up that the connection itself uses, so they cannot change
 * in between; redirects are not followed, since they would lead where nobody looked.
 */
export const fetchText: FetchText = (url) => {
  const { protocol, hostname } = new URL(url);
  const host = hostname.replace(/^\[(.*)\]$/, "$1");
  if (protocol !== "https:") return Promise.reject(new Error(`${url} is not an https URL`));
  if (isIP(host) !== 0 && isBlockedAddress(host)) return Promise.reject(blocked(url));
  return new Promise((resolve, reject) => {
    const outgoing = request(url, { lookup: guardedLookup, agent: false, signal: AbortSignal.timeout(TIMEOUT_MS) }, (response) => {
      if (response.statusCode !== 200) {
        outgoing.destroy();
        reject(new Error(`${url} answers with status ${response.statusCode ?? 0}`));
        return;
      }
      const pieces: Buffer[] = [];
      let size = 0;
      response.on("data", (piece: Buffer) => {
        size += piece.length;
        if (size > LARGEST) outgoing.destroy(new Error(`${url} answers with more than ${LARGEST} bytes`));
        else pieces.push(piece);
      });
      response.on("end", () => resolve(Buffer.concat(pieces).toString("utf8")));
      response.on("error", reject);
    });
    outgoing.on("error", reject);
    outgoing.end();
  });
};

/** A look-up that finds only addresses that may be called. */
const guardedLookup: LookupFunction = (hostname, options, callback) => {
  lookup(hostname, { ...options, all: true }, (error, found) => {
    if (error !== null) {
      callback(error, []);
      return;
    }
    const allowed = found.filter(({ address }) => !isBlockedAddress(address));
    const [first] = allowed;
    if (first === undefined) callback(blocked(hostname), []);
    else if (options.all === true) callback(null, allowed);
    else callback(null, first.address, first.family);
  });
};

const blocked = (place: string): Error =>
  new Error(`${place} leads to an address of this machine, of its link or of a metadata service, which is not called`);
