import { messageOf } from "../base/errors.ts";
import type { ProxyView } from "../model/proxy.ts";
import type { Peer } from "../wire/discovery-stream.ts";
import { GRPC_STATUS } from "../wire/grpc-status.ts";
import { type Node, readNodeBytes } from "../wire/node.ts";
import { StreamRefusal } from "./refusal.ts";

/** Who is on a stream: what it said of itself once, and what that means now. */
export class Identity {
  readonly #viewOf: (node: Node, peer: Peer) => ProxyView;
  #node: Node | undefined;
  #view: ProxyView | undefined;
  #isOld = true;

  constructor(viewOf: (node: Node, peer: Peer) => ProxyView) {
    this.#viewOf = viewOf;
  }

  get node(): Node | undefined {
    return this.#node;
  }

  get view(): ProxyView | undefined {
    return this.#view;
  }

  /** Who it is has been worked out from the latest inputs. */
  get isCurrent(): boolean {
    return !this.#isOld && this.#view !== undefined;
  }

  /** Inputs changed: who the proxy is has to be asked again. */
  age(): void {
    this.#isOld = true;
  }

  /** Takes the node of a request. Only the first has to carry one, and only that is read. Throws `StreamRefusal`. */
  introduce(node: Uint8Array | undefined, maxBytes: number): void {
    if (this.#node !== undefined) return;
    if (node === undefined || node.length === 0)
      throw new StreamRefusal(GRPC_STATUS.INVALID_ARGUMENT, "the first request of a stream must carry a node");
    if (node.length > maxBytes) throw new StreamRefusal(GRPC_STATUS.INVALID_ARGUMENT, `node is larger than ${maxBytes} bytes`);
    try {
      this.#node = readNodeBytes(node);
    } catch (error) {
      throw new StreamRefusal(GRPC_STATUS.INVALID_ARGUMENT, `node cannot be read: ${messageOf(error)}`);
    }
  }

  /** The view as of the latest inputs. Throws `StreamRefusal` for a proxy that may not, or no longer, be what it says. */
  look(peer: Peer): void {
    if (this.#node === undefined || !this.#isOld) return;
    this.#view = this.#viewOf(this.#node, peer);
    this.#isOld = false;
  }
}
