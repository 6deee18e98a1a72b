/** One block of a PEM file. */
export interface PemBlock {
  readonly label: string;
  readonly bytes: Buffer;
}

const BLOCK = /-----BEGIN ([A-Z0-9 ]{1,40})-----\s([A-Za-z0-9+/=\s]*)-----END \1-----/g;

/** All blocks of a PEM text in order; what stands between them is commentary. Headers inside blocks (encrypted keys of old) are not taken. */
export function readPem(text: string): readonly PemBlock[] {
  return [...text.matchAll(BLOCK)].map(([, label = "", body = ""]) => ({ label, bytes: Buffer.from(body, "base64") }));
}

const LINE = 64;

/** A PEM block with lines of 64 characters. */
export function writePem(label: string, bytes: Uint8Array): string {
  const body = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString("base64");
  let text = `-----BEGIN ${label}-----\n`;
  for (let at = 0; at < body.length; at += LINE) text += `${body.slice(at, at + LINE)}\n`;
  return `${text}-----END ${label}-----\n`;
}
