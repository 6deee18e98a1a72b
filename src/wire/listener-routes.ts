import { eachField } from "./field-reader.ts";

/** Numbers of fields on the way from a Listener to the name of a route table. */
const FILTER_CHAINS = [3, 25]; // the default one has a field of its own
const FILTERS = [3];
const TYPED_CONFIG = [4];
const ANY = { typeUrl: [1], value: [2] };
const RDS = [3];
const ROUTE_CONFIG_NAME = [2];

const MANAGER = "envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager";

/** Names of the route tables that an encoded Listener leaves to discovery. Without descriptors: of thousands of fields two are looked at. */
export const listenerRoutes = (listener: Uint8Array): readonly string[] =>
  within(listener, FILTER_CHAINS)
    .flatMap((chain) => within(chain, FILTERS))
    .flatMap((filter) => within(filter, TYPED_CONFIG))
    .filter((config) => within(config, ANY.typeUrl).some((typeUrl) => textOf(typeUrl).endsWith(`/${MANAGER}`)))
    .flatMap((config) => within(config, ANY.value))
    .flatMap((manager) => within(manager, RDS))
    .flatMap((rds) => within(rds, ROUTE_CONFIG_NAME))
    .map(textOf);

/** The values of some fields of a message, in order. */
function within(message: Uint8Array, fields: readonly number[]): readonly Uint8Array[] {
  const found: Uint8Array[] = [];
  eachField(message, (field, reader) => {
    if (!fields.includes(field)) return false;
    found.push(reader.bytes());
    return true;
  });
  return found;
}

const textOf = (bytes: Uint8Array): string => Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString("utf8");
