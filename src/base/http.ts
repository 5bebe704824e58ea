/**
 * Node's HTTP/1.1. An `import` of node:http reads all that it exports, which loads a browser's fetch and WebSocket with it:
 * 2 MB and 15 ms at every start, for nothing.
 */
export const { Agent, createServer, request, STATUS_CODES } = process.getBuiltinModule('node:http')
