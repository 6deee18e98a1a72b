import type { Socket } from "node:net";

/**
 * Hands what the network brings on a socket to `take`, at once and from now on. A stream of Node puts each piece into its buffer, takes it out again, emits
 * an event and asks in a later turn whether to read more; where hundreds of clients call at once that costs as much as to read what they say. Nothing is left
 * unread, so whoever takes it bounds it. The end of the stream and errors come as events, as ever.
 */
export function readDirectly(socket: Socket, take: (bytes: Buffer) => void): void {
  const push = socket.push.bind(socket);
  socket.push = (bytes: Buffer | null): boolean => {
    if (bytes === null || socket.readableLength > 0) return push(bytes); // What came before is still to be taken.
    take(bytes);
    return true;
  };
  socket.on("data", take);
  socket.resume();
}
