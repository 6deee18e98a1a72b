import type { Secret } from "../../base/secret.ts";
import { bytesField, messageField, textField } from "../../wire/field-writer.ts";

/** The bytes of an `envoy.extensions.transport_sockets.tls.v3.Secret` with a certificate and its key. */
export const certificateSecret = (name: string, chain: string, key: Secret<string>): Buffer =>
  Buffer.concat([textField(1, name), messageField(2, [inline(1, chain), inline(2, key.reveal())])]);

/** The same with roots to verify peers with, and lists of the certificates that were revoked, where there are any. */
export const rootsSecret = (name: string, pem: string, revoked = ""): Buffer =>
  Buffer.concat([textField(1, name), messageField(4, [inline(1, pem), ...(revoked === "" ? [] : [inline(7, revoked)])])]);

/** A `DataSource` with inline bytes. */
const inline = (field: number, text: string): Buffer => messageField(field, [bytesField(2, Buffer.from(text, "utf8"))]);
