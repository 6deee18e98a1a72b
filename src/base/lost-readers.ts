/**
 * Goes on when nobody takes what is said any more: a collector of logs that ended, a terminal that was closed, a disk that is full. Who serves others does not end for
 * that, nor does who has an exit status to give.
 */
export function outliveReaders({ stdout, stderr }: Pick<NodeJS.Process, "stdout" | "stderr">): void {
  for (const output of [stdout, stderr]) output.on("error", () => {});
}
