import { join } from "node:path";
import { EdgeError, messageOf } from "../base/errors.ts";
import { writeWholeFile } from "../base/whole-file.ts";
import { CERTIFICATE_FILES } from "./identity/certificate-copies.ts";
import type { NodeIdentity } from "./node-identity.ts";

export interface GrpcBootstrap {
  readonly node: NodeIdentity;
  readonly xdsSocket: string;
  /** Where copies of the workload's certificate are; undefined: the application has none. */
  readonly certificates: string | undefined;
}

/** Name of the listener that a gRPC server asks for, by Istio's rules; `%s` is the address it listens on. */
const SERVER_LISTENER = "xds.istio.io/grpc/lds/inbound/%s";
/** How often the library looks at the files. */
const REFRESH = "60s";

/** What applications whose gRPC library speaks xDS itself are told (gRFC A27, A29): to ask the agent's socket, as this workload, and where its certificate is. */
export function grpcBootstrap({ node: { id, metadata, locality }, xdsSocket, certificates }: GrpcBootstrap): object {
  return {
    xds_servers: [{ server_uri: `unix://${xdsSocket}`, channel_creds: [{ type: "insecure" }], server_features: ["xds_v3"] }],
    node: {
      id,
      locality: { region: locality.region, zone: locality.zone, sub_zone: locality.subzone },
      metadata: { ...metadata, GENERATOR: "grpc" },
    },
    ...(certificates !== undefined && {
      certificate_providers: { default: { plugin_name: "file_watcher", config: filesIn(certificates) } },
    }),
    server_listener_resource_name_template: SERVER_LISTENER,
  };
}

const filesIn = (directory: string): object => ({
  certificate_file: join(directory, CERTIFICATE_FILES.chain),
  private_key_file: join(directory, CERTIFICATE_FILES.key),
  ca_certificate_file: join(directory, CERTIFICATE_FILES.roots),
  refresh_interval: REFRESH,
});

/** Puts it into a file that anybody may read: it is for another container, and holds no secret. */
export async function writeGrpcBootstrap(file: string, bootstrap: GrpcBootstrap): Promise<void> {
  try {
    await writeWholeFile(file, `${JSON.stringify(grpcBootstrap(bootstrap), null, 2)}\n`, 0o644);
  } catch (error) {
    throw new EdgeError("file_unreadable", `the bootstrap for gRPC ${file} cannot be written: ${messageOf(error)}`, {
      cause: error,
      hint: "let this user write there, or set GRPC_XDS_BOOTSTRAP to another file",
    });
  }
}
