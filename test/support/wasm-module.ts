/**
 * A Wasm module for proxies, assembled here byte by byte so that no compiler is needed: it adds a header with a given name and value to
 * every request (proxy-wasm ABI 0.2.1).
 */
export function headerModule(name: string, value: string): Buffer {
  const text = Buffer.from(name + value);
  const body = (...code: readonly number[]): number[] => sized([0, ...code, END]);
  const module = [
    ...section(
      1,
      vector([
        type([], []),
        type([I32], [I32]),
        type([I32, I32], []),
        type([I32, I32], [I32]),
        type([I32, I32, I32], [I32]),
        type([I32, I32, I32, I32, I32], [I32]),
      ]),
    ),
    ...section(2, vector([[...named("env"), ...named("proxy_add_header_map_value"), FUNCTION, 5]])),
    ...section(3, vector([[0], [1], [2], [3], [4]])),
    ...section(5, vector([[0, 2]])),
    ...section(
      7,
      vector([
        [...named("memory"), MEMORY, 0],
        [...named("proxy_abi_version_0_2_1"), FUNCTION, 1],
        [...named("malloc"), FUNCTION, 2],
        [...named("proxy_on_context_create"), FUNCTION, 3],
        [...named("proxy_on_vm_start"), FUNCTION, 4],
        [...named("proxy_on_configure"), FUNCTION, 4],
        [...named("proxy_on_request_headers"), FUNCTION, 5],
      ]),
    ),
    ...section(
      10,
      vector([
        body(),
        // What the host asks memory for is never read: one place is enough.
        body(...constant(SCRATCH)),
        body(),
        body(...constant(1)),
        body(
          ...constant(REQUEST_HEADERS),
          ...constant(TEXT),
          ...constant(Buffer.byteLength(name)),
          ...constant(TEXT + Buffer.byteLength(name)),
          ...constant(Buffer.byteLength(value)),
          ...[CALL, 0, DROP],
          ...constant(0),
        ),
      ]),
    ),
    ...section(11, vector([[0, ...constant(TEXT), END, ...sized([...text])]])),
  ];
  return Buffer.from([0x00, 0x61, 0x73, 0x6d, 1, 0, 0, 0, ...module]);
}

const [I32, END, CALL, DROP, CONST] = [0x7f, 0x0b, 0x10, 0x1a, 0x41];
const [FUNCTION, MEMORY] = [0, 2];
const REQUEST_HEADERS = 0;
const TEXT = 1_024;
const SCRATCH = 65_536;

function unsigned(value: number): number[] {
  return value < 0x80 ? [value] : [(value & 0x7f) | 0x80, ...unsigned(value >>> 7)];
}

function signed(value: number): number[] {
  return value < 0x40 ? [value] : [(value & 0x7f) | 0x80, ...signed(value >>> 7)];
}

const sized = (bytes: readonly number[]): number[] => [...unsigned(bytes.length), ...bytes];
const vector = (items: readonly (readonly number[])[]): number[] => [...unsigned(items.length), ...items.flat()];
const section = (id: number, bytes: readonly number[]): number[] => [id, ...sized(bytes)];
const named = (text: string): number[] => sized([...Buffer.from(text)]);
const type = (parameters: readonly number[], results: readonly number[]): number[] => [0x60, ...sized(parameters), ...sized(results)];
const constant = (value: number): number[] => [CONST, ...signed(value)];
