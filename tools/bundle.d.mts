export const V8_FLAGS: readonly string[];

export function bundle(root: string): Promise<void>;
