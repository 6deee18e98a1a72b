const TRUE: ReadonlySet<string> = new Set(["1", "t", "T", "true", "TRUE", "True"]);
const FALSE: ReadonlySet<string> = new Set(["0", "f", "F", "false", "FALSE", "False"]);

/** A truth value in the spellings that Go's `strconv.ParseBool` takes, as Istio's programs do; undefined where it is none. */
export const parseBool = (text: string): boolean | undefined => (TRUE.has(text) ? true : FALSE.has(text) ? false : undefined);

/** Whether a switch is on. What is no truth value does not turn it on. */
export const isOn = (text: string): boolean => TRUE.has(text);
