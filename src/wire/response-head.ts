import { headerBlock } from "./http2/hpack.ts";

let last: { readonly second: number; readonly block: Buffer } = { second: Number.NaN, block: Buffer.alloc(0) };

/** What every answer begins with. It says what time it is here, so that a machine whose clock is wrong can be told; made once a second. */
export function responseHead(now: number): Buffer {
  const second = Math.floor(now / 1_000);
  if (second === last.second) return last.block;
  const block = headerBlock([
    [":status", "200"],
    ["content-type", "application/grpc"],
    ["grpc-accept-encoding", "identity"],
    ["date", new Date(second * 1_000).toUTCString()],
  ]);
  last = { second, block };
  return block;
}
