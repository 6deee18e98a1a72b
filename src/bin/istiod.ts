import { runProgram } from "../serve/run-program.ts";

process.exitCode = await runProgram({ name: "istiod", about: "the control plane of the mesh in one process", sources: [] }, process);
