import {
  boolYaml11Tag,
  defineScalarTag,
  FAILSAFE_SCHEMA,
  mergeTag,
  NOT_RESOLVED,
  nullCoreTag,
  type ScalarTagDefinition,
  type Schema,
} from "js-yaml";

const DIGITS = [..."0123456789"];
const FLOAT = /^[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?$/;
const INTEGER = /^([-+]?)(?:0[xX]([0-9a-fA-F]+)|0[bB]([01]+)|0[oO]?([0-7]+)|(0|[1-9][0-9]*))$/;

/** Whole numbers as Go reads them: `0x1F`, `0b1`, `010` and `0o10` (octal), `1_000`; no base 60, so `1:30` stays text. */
const integerTag: ScalarTagDefinition<number | string> = defineScalarTag("tag:yaml.org,2002:int", {
  implicit: true,
  implicitFirstChars: ["-", "+", ...DIGITS],
  resolve: (source) => integerOf(source.includes("_") ? source.replaceAll("_", "") : source),
  identify: () => false,
});

/** Fractions and exponents. `.inf` and `.nan` stay text: JSON has no such numbers and no field of ours takes them. */
const floatTag: ScalarTagDefinition<number> = defineScalarTag("tag:yaml.org,2002:float", {
  implicit: true,
  implicitFirstChars: ["-", "+", ".", ...DIGITS],
  resolve: (source) => {
    const plain = source.includes("_") ? source.replaceAll("_", "") : source;
    return FLOAT.test(plain) ? Number(plain) : NOT_RESOLVED;
  },
  identify: () => false,
});

/**
 * Plain scalars as Kubernetes and Istio read them, through sigs.k8s.io/yaml (YAML 1.1 with exceptions): `yes`, `on`, `y` and their
 * opposites are booleans, `010` is 8, `<<` merges; dates stay text, as in JSON. Unknown tags are an error.
 */
export const KUBERNETES_YAML: Schema = FAILSAFE_SCHEMA.withTags(nullCoreTag, boolYaml11Tag, integerTag, floatTag, mergeTag);

/** A number that a double cannot hold exactly is kept as its digits: 64-bit fields take numeric strings and lose nothing. */
function integerOf(plain: string): number | string | typeof NOT_RESOLVED {
  const match = INTEGER.exec(plain);
  if (match === null) return NOT_RESOLVED;
  const [, sign, hex, binary, octal, decimal] = match;
  const magnitude =
    decimal !== undefined
      ? Number(decimal)
      : hex !== undefined
        ? Number.parseInt(hex, 16)
        : binary !== undefined
          ? Number.parseInt(binary, 2)
          : Number.parseInt(octal ?? "", 8);
  if (!Number.isSafeInteger(magnitude)) return decimal === undefined ? NOT_RESOLVED : `${sign === "-" ? "-" : ""}${decimal}`;
  return sign === "-" && magnitude !== 0 ? -magnitude : magnitude;
}
