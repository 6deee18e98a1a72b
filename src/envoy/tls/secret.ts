import { create } from "@bufbuild/protobuf";
import { type Secret, SecretSchema } from "../../gen/envoy/extensions/transport_sockets/tls/v3/secret_pb.js";

/** What a secret is: content, or the paths of files on the proxy's machine, which Envoy reads and follows by itself. */
export type SecretContent =
  | { readonly is: "certificate"; readonly chain: Uint8Array; readonly key: Uint8Array; readonly ocspStaple?: Uint8Array }
  | { readonly is: "roots"; readonly roots: Uint8Array; readonly revoked?: Uint8Array }
  | { readonly is: "certificateFiles"; readonly chainFile: string; readonly keyFile: string }
  | { readonly is: "rootsFile"; readonly file: string; readonly revokedFile?: string };

/** Builds the secret that a listener or cluster asks for by name. */
export const buildSecret = (name: string, content: SecretContent): Secret => create(SecretSchema, { name, type: typeOf(content) });

function typeOf(input: SecretContent) {
  switch (input.is) {
    case "certificate":
      return {
        case: "tlsCertificate",
        value: {
          certificateChain: bytes(input.chain),
          privateKey: bytes(input.key),
          ...(input.ocspStaple !== undefined && { ocspStaple: bytes(input.ocspStaple) }),
        },
      } as const;
    case "roots":
      return {
        case: "validationContext",
        value: { trustedCa: bytes(input.roots), ...(input.revoked !== undefined && { crl: bytes(input.revoked) }) },
      } as const;
    case "certificateFiles":
      return {
        case: "tlsCertificate",
        value: { certificateChain: file(input.chainFile), privateKey: file(input.keyFile) },
      } as const;
    case "rootsFile":
      return {
        case: "validationContext",
        value: { trustedCa: file(input.file), ...(input.revokedFile !== undefined && { crl: file(input.revokedFile) }) },
      } as const;
  }
}

const bytes = (value: Uint8Array) => ({ specifier: { case: "inlineBytes", value } }) as const;
const file = (path: string) => ({ specifier: { case: "filename", value: path } }) as const;
