type Points = readonly (readonly [x: number, y: number])[];

/** How much y grows for each x, and how sure that is: the standard error of the slope. */
export function trend(points: Points): { readonly slope: number; readonly error: number } {
  const growth = slope(points);
  const mean = (pick: 0 | 1): number => points.reduce((sum, point) => sum + point[pick], 0) / Math.max(1, points.length);
  const [mx, my] = [mean(0), mean(1)];
  const spread = points.reduce((sum, [x]) => sum + (x - mx) ** 2, 0);
  const rest = points.reduce((sum, [x, y]) => sum + (y - my - growth * (x - mx)) ** 2, 0);
  return { slope: growth, error: spread === 0 || points.length < 3 ? 0 : Math.sqrt(rest / (points.length - 2) / spread) };
}

/** Least squares: how much y grows for each x. */
export function slope(points: Points): number {
  const mean = (pick: 0 | 1): number => points.reduce((sum, point) => sum + point[pick], 0) / Math.max(1, points.length);
  const [mx, my] = [mean(0), mean(1)];
  const spread = points.reduce((sum, [x]) => sum + (x - mx) ** 2, 0);
  return spread === 0 ? 0 : points.reduce((sum, [x, y]) => sum + (x - mx) * (y - my), 0) / spread;
}
