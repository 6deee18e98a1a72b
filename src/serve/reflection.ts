import { create, type DescFile, fromBinary, type MessageInitShape, type Registry, toBinary } from "@bufbuild/protobuf";
import { FileDescriptorProtoSchema } from "@bufbuild/protobuf/wkt";
import type { Caller } from "../authn/authenticator.ts";
import { AuthnError } from "../authn/authn-error.ts";
import {
  type ServerReflectionRequest,
  ServerReflectionRequestSchema,
  ServerReflectionResponseSchema,
} from "../gen/grpc/reflection/v1/reflection_pb.js";
import { CallRefusal } from "../wire/call-refusal.ts";
import type { Peer } from "../wire/discovery-stream.ts";
import type { UnaryMethod } from "../wire/grpc-server.ts";
import { GRPC_STATUS } from "../wire/grpc-status.ts";
import { messageRegistry } from "../wire/json.ts";

export interface ReflectionOptions {
  /** Paths of the methods that are served beside it. */
  readonly methods: readonly string[];
  /** Who calls; throws `AuthnError`. */
  authenticate(peer: Peer): Promise<Caller>;
  refused(error: AuthnError): void;
}

/** The same messages under two names; tools ask under either. */
const METHODS = ["v1", "v1alpha"].map((version) => `/grpc.reflection.${version}.ServerReflection/ServerReflectionInfo`);

type Response = NonNullable<MessageInitShape<typeof ServerReflectionResponseSchema>["messageResponse"]>;

/**
 * gRPC's server reflection, by path: which services there are, and the descriptors of all messages we know, those inside of an `Any` among them. It tells nothing that is not published, but is
 * for callers who have proved who they are, as everything on their port. Each call proves it once.
 */
export function reflection({ methods, authenticate, refused }: ReflectionOptions): Readonly<Record<string, UnaryMethod>> {
  const services = [...new Set([...methods, ...METHODS].map((path) => path.split("/")[1] ?? ""))].sort();
  const proofs = new WeakMap<Peer, Promise<Caller>>();
  const prove = async (peer: Peer): Promise<void> => {
    const proof = proofs.get(peer) ?? authenticate(peer);
    proofs.set(peer, proof);
    try {
      if ((await proof).once !== undefined) throw new AuthnError("no credentials", "a token for one certificate is for nothing else");
    } catch (error) {
      if (!(error instanceof AuthnError)) throw error;
      refused(error);
      throw new CallRefusal(GRPC_STATUS.UNAUTHENTICATED, error.message);
    }
  };
  const answer: UnaryMethod = async (bytes, peer) => {
    await prove(peer);
    const originalRequest = readRequest(bytes);
    const messageResponse = answerTo(originalRequest.messageRequest, services, await messageRegistry());
    return toBinary(
      ServerReflectionResponseSchema,
      create(ServerReflectionResponseSchema, { validHost: originalRequest.host, originalRequest, messageResponse }),
    );
  };
  return Object.fromEntries(METHODS.map((path) => [path, answer]));
}

function readRequest(bytes: Uint8Array): ServerReflectionRequest {
  try {
    return fromBinary(ServerReflectionRequestSchema, bytes);
  } catch {
    throw new CallRefusal(GRPC_STATUS.INVALID_ARGUMENT, "the request cannot be read");
  }
}

function answerTo(asked: ServerReflectionRequest["messageRequest"], services: readonly string[], registry: Registry): Response {
  switch (asked.case) {
    case "listServices":
      return { case: "listServicesResponse", value: { service: services.map((name) => ({ name })) } };
    case "fileByFilename":
      return fileAnswer(fileByName(asked.value, registry), asked.value);
    case "fileContainingSymbol":
      return fileAnswer(fileOfSymbol(asked.value, registry), asked.value);
    case "fileContainingExtension": {
      const { containingType, extensionNumber } = asked.value;
      const extended = registry.getMessage(containingType);
      const extension = extended && registry.getExtensionFor(extended, extensionNumber);
      return fileAnswer(extension?.file, `extension ${extensionNumber} of ${containingType}`);
    }
    case "allExtensionNumbersOfType": {
      if (registry.getMessage(asked.value) === undefined) return notFound(asked.value);
      const extensions = [...registry]
        .filter((one) => one.kind === "extension")
        .filter(({ extendee }) => extendee.typeName === asked.value);
      const extensionNumber = extensions.map(({ number }) => number).sort((a, b) => a - b);
      return { case: "allExtensionNumbersResponse", value: { baseTypeName: asked.value, extensionNumber } };
    }
    case undefined:
      return { case: "errorResponse", value: { errorCode: GRPC_STATUS.INVALID_ARGUMENT, errorMessage: "nothing was asked" } };
  }
}

/** One file: those that it imports are asked for by name. */
const fileAnswer = (file: DescFile | undefined, wanted: string): Response =>
  file === undefined
    ? notFound(wanted)
    : { case: "fileDescriptorResponse", value: { fileDescriptorProto: [toBinary(FileDescriptorProtoSchema, file.proto)] } };

const notFound = (wanted: string): Response => ({
  case: "errorResponse",
  value: { errorCode: GRPC_STATUS.NOT_FOUND, errorMessage: `${wanted.slice(0, 200)} is not known here` },
});

const known = new WeakMap<Registry, ReadonlyMap<string, DescFile>>();

function fileByName(name: string, registry: Registry): DescFile | undefined {
  const files = known.get(registry) ?? filesOf(registry);
  known.set(registry, files);
  return files.get(name);
}

/** Each file holds some type, so none is missing. */
const filesOf = (registry: Registry): ReadonlyMap<string, DescFile> => new Map([...registry].map(({ file }) => [file.proto.name, file]));

/** A type, a service or an extension; else what it is a part of: a method of a service, a field of a message. */
function fileOfSymbol(symbol: string, registry: Registry): DescFile | undefined {
  const outer = symbol.slice(0, Math.max(symbol.lastIndexOf("."), 0));
  const whole = registry.get(symbol)?.file;
  if (whole !== undefined || outer === "") return whole;
  const owner = registry.get(outer);
  const parts = owner?.kind === "service" ? owner.methods : owner?.kind === "message" ? owner.fields : [];
  return parts.some(({ name }) => name === symbol.slice(outer.length + 1)) ? owner?.file : undefined;
}
