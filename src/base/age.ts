/** How long something has lasted, for people: `40 s`, `12 min`, `3 h`. */
export const ageOf = (ms: number): string =>
  ms < 120_000 ? `${Math.round(ms / 1000)} s` : ms < 7_200_000 ? `${Math.round(ms / 60_000)} min` : `${Math.round(ms / 3_600_000)} h`;
