/** Something Envoy would refuse a message for. */
export interface Fault {
  /** Where in the message: `http_filters[2].typed_config.stat_prefix`. */
  readonly path: string;
  readonly reason: string;
}

export const faultText = ({ path, reason }: Fault): string => (path === "" ? reason : `${path} ${reason}`);

/** A fault at a field of a message; an empty path means the message itself. */
export const at = (path: string, reason: string): Fault => ({ path, reason });
