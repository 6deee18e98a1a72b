/**
 * Node's HTTP client and server. Taken like this because an `import` of the module reads every name it exports, among them WebSocket, which loads
 * Node's other HTTP client: measured, 10 MB that an agent never uses.
 */
export const { createServer, request } = process.getBuiltinModule("node:http");
