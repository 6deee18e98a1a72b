/** What the configuration directory may cost. Everything beyond is refused with a sentence, never half read. */
export interface FileLimits {
  /** Bytes of one file. */
  readonly maxFileBytes: number;
  readonly maxFiles: number;
  readonly maxDirectories: number;
  /** Levels of directories, links followed. */
  readonly maxDepth: number;
}

/** Those in force where no setting says otherwise. */
export const FILE_LIMITS: FileLimits = { maxFileBytes: 16 * 1024 * 1024, maxFiles: 100_000, maxDirectories: 10_000, maxDepth: 32 };

/** Name of the setting for `maxFileBytes`, as the sentence about a file that is too large gives it. */
export const MAX_FILE_BYTES_SETTING = "ISTIO_MAX_CONFIG_FILE_BYTES";

/** How long things are left to settle. Times in ms. */
export interface FileTimes {
  /** A full scan that finds what no event told. */
  readonly rescan: number;
  /** How soon a directory that cannot be read is tried again. */
  readonly retry: number;
  /** A burst of changes is taken as one when this long nothing new came … */
  readonly quiet: number;
  /** … or when its first change has waited this long. A first, single change does not wait. */
  readonly maxWait: number;
  /** A file that was written a moment ago must look the same after this long. */
  readonly settle: number;
  /** A missing file must stay missing this long: some editors save by moving the old file away first. */
  readonly missing: number;
  /** A file with fewer documents than before must stay so this long: it may still be being written. */
  readonly fewer: number;
  /** The same for a file with none left: `program > file.yaml` empties it long before it writes. */
  readonly empty: number;
}

/** Those in force; tests that wait for something else lengthen them. */
export const FILE_TIMES: FileTimes = {
  rescan: 30_000,
  retry: 1_000,
  quiet: 20,
  maxWait: 200,
  settle: 10,
  missing: 50,
  fewer: 200,
  empty: 1_000,
};
