import { startupSnapshot } from "node:v8";
import { type Program, runProgram } from "./run-program.ts";

/**
 * Runs a control plane as this process. While a snapshot of the process is being made nothing runs yet: then this is what every start from the
 * snapshot does. So no module may do more than declare while it is loaded (`tools/snapshot.mjs` holds it).
 */
export function launch(program: Program): void {
  const run = async (): Promise<void> => {
    process.exitCode = await runProgram(program, process);
  };
  if (startupSnapshot.isBuildingSnapshot()) startupSnapshot.setDeserializeMainFunction(() => void run());
  else void run();
}
