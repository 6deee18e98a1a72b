import { launch } from "../serve/launch.ts";

launch({ name: "istiod-vm", about: "the control plane of the mesh without Kubernetes: files only", sources: [] });
