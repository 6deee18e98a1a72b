/** Numbers of one series: a counter has one, a histogram one for each of its buckets, a sum and a count. */
export type Numbers = number[];

/** A metric, and what the numbers of its series are called. */
export interface Shape {
  readonly name: string;
  readonly type: string;
  /** End of the name and, for buckets, the limit: `_bucket` and `le="5"`. */
  readonly columns: { readonly suffix: string; readonly limit: string }[];
}

/** Shapes by name. They outlive a page, so that numbers of two pages can be added. */
export type Shapes = Map<string, Shape>;

/** A metric and its series by the text of their labels. */
export interface Family {
  readonly shape: Shape;
  readonly series: Map<string, Numbers>;
}

const LIMIT = 'le="';

/** Takes metrics in Prometheus' text form apart, line by line. A histogram's lines become one series, whose labels are kept once. */
export class SeriesReader {
  readonly families = new Map<string, Family>();
  readonly #shapes: Shapes;
  #current: Family | undefined;

  constructor(shapes: Shapes) {
    this.#shapes = shapes;
  }

  /** A line of a family that was announced before; others are not kept. */
  take(line: string): void {
    if (line.startsWith("# TYPE ")) this.#announce(line);
    const open = line.indexOf("{");
    const close = line.lastIndexOf("}");
    const family = this.#current;
    if (line.startsWith("#") || open < 0 || close < open || family === undefined) return;
    const name = line.slice(0, open);
    const { shape } = family;
    if (!name.startsWith(shape.name)) return;
    const { labels, limit } = splitLimit(line.slice(open + 1, close));
    const value = Number(
      line
        .slice(close + 1)
        .trim()
        .split(" ")[0],
    );
    if (!Number.isFinite(value)) return;
    const series = family.series.get(labels) ?? [];
    series[columnOf(shape, name.slice(shape.name.length), limit)] = value;
    family.series.set(labels, series);
  }

  #announce(line: string): void {
    const [, , name = "", type = "untyped"] = line.split(" ");
    const shape = this.#shapes.get(name) ?? { name, type, columns: [] };
    this.#shapes.set(name, shape);
    this.#current = this.families.get(name) ?? { shape, series: new Map() };
    this.families.set(name, this.#current);
  }
}

/** The limit of a bucket is the last of its labels. */
function splitLimit(labels: string): { readonly labels: string; readonly limit: string } {
  const at = labels.startsWith(LIMIT) ? 0 : labels.lastIndexOf(`,${LIMIT}`);
  if (at < 0) return { labels, limit: "" };
  return { labels: labels.slice(0, at), limit: labels.slice(at === 0 ? 0 : at + 1) };
}

function columnOf({ columns }: Shape, suffix: string, limit: string): number {
  const known = columns.findIndex((column) => column.limit === limit && column.suffix === suffix);
  return known >= 0 ? known : columns.push({ suffix, limit }) - 1;
}

/** A metric as text. */
export function familyText({ name, type, columns }: Shape, series: ReadonlyMap<string, Numbers>): string {
  let text = `# TYPE ${name} ${type}\n`;
  for (const [labels, numbers] of series)
    for (const [index, { suffix, limit }] of columns.entries())
      if (numbers[index] !== undefined) text += `${name}${suffix}{${labels}${limit === "" ? "" : `,${limit}`}} ${numbers[index]}\n`;
  return text;
}

/** Adds the numbers of a series, or takes them away, from those under some labels. */
export function addNumbers(to: Map<string, Numbers>, labels: string, { numbers, sign = 1 }: { numbers: Numbers; sign?: 1 | -1 }): void {
  const sum = to.get(labels) ?? [];
  numbers.forEach((value, index) => {
    sum[index] = (sum[index] ?? 0) + sign * value;
  });
  to.set(labels, sum);
}
