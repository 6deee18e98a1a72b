type Http = typeof import("node:http");

const http = (): Http => process.getBuiltinModule("node:http");

/**
 * Node's HTTP client and server. Taken like this because an `import` of the module reads every name it exports, among them WebSocket, which loads
 * Node's other HTTP client: measured, 10 MB that an agent never uses. And at the first call, since no snapshot of a process can hold the module.
 */
export const createServer = ((...args: unknown[]) => Reflect.apply(http().createServer, undefined, args)) as Http["createServer"];

/** See `createServer`. */
export const request = ((...args: unknown[]) => Reflect.apply(http().request, undefined, args)) as Http["request"];
