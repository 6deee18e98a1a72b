const NUMBER = /^(?:(0x)([0-9a-f]*)(\.[0-9a-f]*)?(p[-+]?[0-9]+)?|(0b)([01]+)|([0-9]*)(\.[0-9]*)?(e[-+]?[0-9]+)?)(i|u?ll|llu)?$/i;
const LARGEST = 0xffff_ffff_ffff_ffffn;
const BITS = 64;
const LARGEST_EXPONENT = 1_048_575;

/** Whether LuaJIT reads a run of digits and letters as a number: hexadecimal and binary ones, imaginary ones and 64-bit integers included. */
export function isLuaNumber(text: string): boolean {
  const parts = NUMBER.exec(text);
  if (parts === null) return false;
  const [, hexMark, hex = "", hexFraction, hexExponent, binaryMark, binary = "", decimal = "", decimalFraction, decimalExponent, suffix] =
    parts;
  if (binaryMark !== undefined) return withoutZeros(binary).length <= BITS;
  const [digits, fraction, exponent] =
    hexMark === undefined ? [decimal, decimalFraction, decimalExponent] : [hex, hexFraction, hexExponent];
  if (digits === "" && (fraction ?? ".") === ".") return false;
  if (exponent !== undefined && Math.abs(Number(exponent.slice(1))) > LARGEST_EXPONENT) return false;
  const isWhole = suffix !== undefined && suffix.toLowerCase() !== "i";
  return !isWhole || (fraction === undefined && exponent === undefined && fits(`${hexMark ?? ""}${withoutZeros(digits)}`));
}

const withoutZeros = (digits: string): string => digits.replace(/^0+(?=.)/, "");

/** Digits are counted first: a conversion takes longer than it is long. */
const fits = (digits: string): boolean => digits.length <= BITS && BigInt(digits) <= LARGEST;

/** The escapes that LuaJIT knows. */
export const LUA_ESCAPE = /\\(?:[abfnrtv\\"']|x[0-9a-fA-F]{2}|u\{([0-9a-fA-F]+)\}|([0-9]{1,3})|z[ \t\v\f\n\r]*|\r\n|\n\r|\n|\r)/y;

/** Whether what an escape names is there: a byte, or a character that is no half of one. */
export function isLuaCharacter([, character, byte]: RegExpExecArray): boolean {
  if (byte !== undefined) return Number(byte) <= 0xff;
  if (character === undefined) return true;
  const digits = withoutZeros(character);
  const code = digits.length > 6 ? Number.POSITIVE_INFINITY : Number.parseInt(digits, 16);
  return code <= 0x10ffff && (code < 0xd800 || code > 0xdfff);
}
