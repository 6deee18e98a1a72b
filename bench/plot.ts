import type { Curve } from "./growth.ts";
import { round } from "./measurement.ts";

const WIDTH = 360;
const HEIGHT = 220;
const LEFT = 56;
const BOTTOM = 36;
const TOP = 34;
const RIGHT = 14;

/** A curve as an SVG picture: both axes from zero, so that a straight line through the origin is linear growth. */
export function plot({ axis, cost, unit, points }: Curve): string {
  const most = (at: 0 | 1): number => Math.max(...points.map((point) => point[at]), 1e-9);
  const [xs, ys] = [most(0), most(1) * 1.1];
  const x = (value: number): number => round(LEFT + (value / xs) * (WIDTH - LEFT - RIGHT));
  const y = (value: number): number => round(HEIGHT - BOTTOM - (value / ys) * (HEIGHT - BOTTOM - TOP));
  const line = points.map(([px, py]) => `${x(px)},${y(py)}`).join(" ");
  const ticks = [0.25, 0.5, 0.75, 1].map((share) => ys * share);
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" width="${WIDTH}" height="${HEIGHT}" font-family="sans-serif" font-size="11">`,
    `<rect width="${WIDTH}" height="${HEIGHT}" fill="white"/>`,
    `<text x="${LEFT}" y="18" font-size="13">${cost} (${unit})</text>`,
    ...ticks.map((tick) => `<line x1="${LEFT}" x2="${WIDTH - RIGHT}" y1="${y(tick)}" y2="${y(tick)}" stroke="#ddd"/>`),
    ...ticks.map((tick) => `<text x="${LEFT - 6}" y="${y(tick) + 4}" text-anchor="end">${round(tick)}</text>`),
    `<line x1="${LEFT}" x2="${WIDTH - RIGHT}" y1="${y(0)}" y2="${y(0)}" stroke="black"/>`,
    `<polyline points="${line}" fill="none" stroke="#1565c0" stroke-width="2"/>`,
    ...points.map(([px, py]) => `<circle cx="${x(px)}" cy="${y(py)}" r="3" fill="#1565c0"/>`),
    ...points.map(([px]) => `<text x="${x(px)}" y="${HEIGHT - BOTTOM + 15}" text-anchor="middle">${px}</text>`),
    `<text x="${(WIDTH + LEFT) / 2}" y="${HEIGHT - 6}" text-anchor="middle">${axis}</text>`,
    "</svg>",
    "",
  ].join("\n");
}

/** The file a curve is kept in. */
export const plotFile = ({ axis, cost }: Pick<Curve, "axis" | "cost">): string =>
  `${`${cost} by ${axis}`.toLowerCase().replaceAll(/[^a-z]+/g, "-")}.svg`;
