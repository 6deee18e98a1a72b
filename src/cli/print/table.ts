/** Rows that belong together, and lines to put below them. */
export interface TableGroup {
  readonly rows: readonly (readonly string[])[];
  readonly notes?: readonly string[];
}

const GAP = "     ";

/** A table as kubectl and istioctl print theirs: columns as wide as their widest cell, an empty cell shown as `-`. */
export function table(header: readonly string[], groups: readonly TableGroup[]): string {
  const rows = groups.flatMap((group) => group.rows);
  const widths = header.map((title, column) => rows.reduce((width, row) => Math.max(width, cell(row, column).length), title.length));
  const line = (row: readonly string[]): string =>
    widths
      .map((width, column) => cell(row, column).padEnd(width))
      .join(GAP)
      .trimEnd();
  const body = groups.flatMap((group) => [...group.rows.map(line), ...(group.notes ?? []).map((note) => `    ${note}`)]);
  return [line(header), ...body].join("\n");
}

function cell(row: readonly string[], column: number): string {
  const text = row[column] ?? "";
  return text === "" ? "-" : text;
}
