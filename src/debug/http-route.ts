/** One answer. `body` objects are sent as JSON. */
export interface HttpAnswer {
  readonly status: number;
  readonly body: unknown;
  readonly contentType?: string;
}

/** One page. */
export interface HttpRoute {
  readonly path: string;
  /** Open routes answer anyone; the others want the debug token. */
  readonly open: boolean;
  readonly about: string;
  readonly answer: (query: URLSearchParams) => HttpAnswer | Promise<HttpAnswer>;
}
