import type { Engine } from "../../engine/index.ts";
import type { GenerateContext } from "../context.ts";
import { type AssignmentPlanning, defineAssignmentPlanning } from "./assignment-plan.ts";
import { type AssignmentSelection, defineAssignmentSelection } from "./select-assignment.ts";

/** Planning and selection of endpoints, shared by load assignments and by the clusters that carry theirs inside. */
export interface Assignments extends AssignmentPlanning, AssignmentSelection {}

const defined = new WeakMap<Engine, Assignments>();

function define(ctx: GenerateContext): Assignments {
  const planning = defineAssignmentPlanning(ctx);
  return { ...planning, ...defineAssignmentSelection(ctx, planning) };
}

/** The queries about endpoints of an engine; defined on first use, since queries have one definition per engine. */
export function assignmentsOf(ctx: GenerateContext): Assignments {
  const known = defined.get(ctx.engine) ?? define(ctx);
  defined.set(ctx.engine, known);
  return known;
}
