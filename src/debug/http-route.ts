/** One answer. `body` objects are sent as JSON. */
export interface HttpAnswer {
  readonly status: number;
  readonly body: unknown;
  readonly contentType?: string;
}

/** One page. */
export interface HttpRoute {
  readonly path: string;
  /** Open routes answer anyone; the others want the debug token, or to know who asks. */
  readonly open: boolean;
  readonly about: string;
  /** What it is asked with; GET where it is not said. */
  readonly method?: "POST";
  /** What somebody may see who belongs to one namespace; where it is not said, nothing. */
  readonly within?: (namespace: string) => HttpRoute["answer"];
  /** `body` is the JSON that came with a POST. */
  readonly answer: (query: URLSearchParams, body?: unknown) => HttpAnswer | Promise<HttpAnswer>;
}
