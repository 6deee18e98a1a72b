/** How short memory is: there is enough; so short that nothing is begun that can wait; so short that somebody has to go. */
export type Pressure = "none" | "tight" | "critical";
