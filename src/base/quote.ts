const LONGEST = 80;

/** A user's text inside a message: quoted, cut where it is long, control characters escaped. */
export function quote(text: string): string {
  return JSON.stringify(text.length > LONGEST ? `${text.slice(0, LONGEST)}…` : text);
}
