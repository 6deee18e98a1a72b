/** One answer. `body` is sent as it is where it is text or bytes, else as JSON; what can be iterated over in it is read while it is sent. */
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
  /** It does something, or costs others: whoever may only look does not get it. So it is with all that is not asked with GET. */
  readonly acts?: true;
  /** What somebody may see who belongs to one namespace; where it is not said, nothing. */
  readonly within?: (namespace: string) => HttpRoute["answer"];
  /** `body` is the JSON that came with a POST, null where none did. */
  readonly answer: (query: URLSearchParams, body?: unknown) => HttpAnswer | Promise<HttpAnswer>;
}
