export interface MetricLinesOptions {
  /** What goes beyond is cut off after a whole line. */
  readonly atMostBytes: number;
  /** OpenMetrics has no empty lines. */
  readonly openMetrics: boolean;
  /** Takes lines that are not to be passed on as they are. */
  readonly take?: (line: string) => boolean;
}

const END = "# EOF";

/**
 * Passes metrics on by whole lines, so that several sources can follow one another: the mark that ends OpenMetrics is taken out.
 */
export class MetricLines {
  readonly #options: MetricLinesOptions;
  readonly #decoder = new TextDecoder();
  #rest = "";
  #size = 0;

  constructor(options: MetricLinesOptions) {
    this.#options = options;
  }

  /** Lines that are whole now; undefined where it is too much, and nothing more is to be passed on. */
  push(chunk: Uint8Array): string | undefined {
    this.#size += chunk.length;
    if (this.#size > this.#options.atMostBytes) return undefined;
    const text = this.#rest + this.#decoder.decode(chunk, { stream: true });
    const end = text.lastIndexOf("\n");
    this.#rest = text.slice(end + 1);
    return end < 0 ? "" : this.#lines(text.slice(0, end));
  }

  /** The last line of a source that ended well, which may lack its end. One that broke off may have lost half of a number: then it is not asked for. */
  end(): string {
    return this.#rest === "" ? "" : this.#lines(this.#rest);
  }

  #lines(text: string): string {
    let out = "";
    for (const line of text.split("\n")) {
      const bare = line.endsWith("\r") ? line.slice(0, -1) : line;
      if (bare.trim() === END || (bare === "" && this.#options.openMetrics) || this.#options.take?.(bare) === true) continue;
      out += `${bare}\n`;
    }
    return out;
  }
}
