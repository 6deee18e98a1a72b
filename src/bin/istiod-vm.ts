import { runProgram } from "../serve/run-program.ts";

process.exitCode = await runProgram(
  { name: "istiod-vm", about: "the control plane of the mesh without Kubernetes: files only", sources: [] },
  process,
);
