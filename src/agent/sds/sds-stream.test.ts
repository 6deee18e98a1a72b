import { mkdir, rename, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { fromBinary } from "@bufbuild/protobuf";
import { describe, expect, it, onTestFinished } from "vitest";
import { tempDir } from "../../../test/support/cleanup.ts";
import { eventually } from "../../../test/support/wait.ts";
import { systemClock } from "../../base/clock.ts";
import { silentLog } from "../../base/log.ts";
import { Secret } from "../../base/secret.ts";
import { type Secret as SecretMessage, SecretSchema } from "../../gen/envoy/extensions/transport_sockets/tls/v3/secret_pb.js";
import { DiscoveryResponseSchema } from "../../gen/envoy/service/discovery/v3/discovery_pb.js";
import { bodyOfResource, deltaRequestBytes, readDeltaResponse } from "../../wire/delta-frames.ts";
import { textField } from "../../wire/field-writer.ts";
import { type GrpcChannel, openGrpcChannel } from "../../wire/grpc-channel.ts";
import { createGrpcServer, DELTA_SECRETS_METHOD, SECRETS_METHOD } from "../../wire/grpc-server.ts";
import { SECRET_TYPE } from "../../wire/type-urls.ts";
import type { WorkloadIdentity } from "../identity/workload-identity.ts";
import { serveSecrets } from "./sds-stream.ts";
import { createSecretStore } from "./secret-store.ts";

interface Rig {
  readonly home: string;
  readonly channel: GrpcChannel;
  readonly passedOn: string[];
  setRoots(pem: string): void;
}

async function startRig(): Promise<Rig> {
  const home = await tempDir();
  const followers = new Set<() => void>();
  const passedOn: string[] = [];
  let roots = "";
  const identity = {
    current: { chain: "CHAIN", key: new Secret("KEY"), createdAt: 0, endsAt: 0, serial: "", name: "" },
    roots: () => roots,
    follow(changed: () => void) {
      followers.add(changed);
      return () => followers.delete(changed);
    },
  } as unknown as WorkloadIdentity;
  const store = createSecretStore({ baseDir: home, identity, clock: systemClock, log: silentLog });
  const server = createGrpcServer({
    accept: (stream) =>
      serveSecrets(stream, { store, log: silentLog, passOn: () => ({ message: (bytes) => passedOn.push(String(bytes)), ended() {} }) }),
    discoveryPaths: { [SECRETS_METHOD]: "sotw", [DELTA_SECRETS_METHOD]: "delta" },
    healthy: () => true,
    clock: systemClock,
  });
  const path = join(home, "socket");
  await server.listen(`unix:${path}`);
  const channel = await openGrpcChannel({ to: { path }, clock: systemClock });
  onTestFinished(async () => {
    channel.close();
    await server.drain(0);
  });
  const setRoots = (pem: string): void => {
    roots = pem;
    for (const changed of followers) changed();
  };
  return { home, channel, passedOn, setRoots };
}

/** Asks for names over state-of-the-world SDS, as Envoy does; collects what comes. */
function ask({ channel }: Rig, ...names: readonly string[]): { readonly secrets: SecretMessage[] } {
  const secrets: SecretMessage[] = [];
  const call = channel.open(
    SECRETS_METHOD,
    {},
    {
      message(bytes) {
        const { resources } = fromBinary(DiscoveryResponseSchema, bytes);
        secrets.push(...resources.map(({ value }) => fromBinary(SecretSchema, value)));
      },
      ended() {},
    },
  );
  call.send(Buffer.concat([...names.map((name) => textField(3, name)), textField(4, SECRET_TYPE)]));
  return { secrets };
}

const inline = (secret: SecretMessage | undefined): readonly string[] => {
  if (secret?.type.case === "tlsCertificate")
    return [secret.type.value.certificateChain, secret.type.value.privateKey].map((source) =>
      String(Buffer.from(source?.specifier.value ?? "")),
    );
  if (secret?.type.case === "validationContext") return [String(Buffer.from(secret.type.value.trustedCa?.specifier.value ?? ""))];
  return [];
};

describe("the agent's SDS server", () => {
  it("serves the workload's certificate at once, and roots as soon as there are some and when they change", async () => {
    const rig = await startRig();
    const certificate = ask(rig, "default");
    const roots = ask(rig, "ROOTCA");
    await eventually("the certificate comes", () => certificate.secrets.length === 1);
    expect(certificate.secrets[0]?.name).toBe("default");
    expect(inline(certificate.secrets[0])).toEqual(["CHAIN", "KEY"]);
    expect(roots.secrets).toEqual([]);
    for (const [index, pem] of ["ONE", "TWO"].entries()) {
      rig.setRoots(pem);
      rig.setRoots(pem);
      await eventually("roots come", () => roots.secrets.length === index + 1);
      expect(inline(roots.secrets[index])).toEqual([pem]);
    }
    expect(certificate.secrets).toHaveLength(1);
  });

  it("serves lists of revoked certificates with the roots, as they change", async () => {
    const rig = await startRig();
    const [directory, list] = [join(rig.home, "var/run/secrets/istio/crl"), (text: string) => `-----BEGIN X509 CRL-----\n${text}\n`];
    await mkdir(directory, { recursive: true });
    const write = (text: string): Promise<void> => writeFile(join(directory, "ca-crl.pem"), text);
    await write(list("one"));
    rig.setRoots("ROOTS");
    const { secrets } = ask(rig, "ROOTCA");
    const revoked = (): string | undefined => {
      const type = secrets.at(-1)?.type;
      const source = type?.case === "validationContext" ? type.value.crl : undefined;
      return source === undefined ? undefined : String(Buffer.from(source.specifier.value ?? ""));
    };
    await eventually("roots come", () => secrets.length === 1);
    expect([...inline(secrets[0]), revoked()]).toEqual(["ROOTS", list("one")]);
    await write(list("two"));
    await eventually("the next list comes", () => revoked() === list("two"));
    // One that vanishes stays in force. Another file is looked at as often: two changes of it seen, the list was looked for too.
    await rm(join(directory, "ca-crl.pem"));
    const other = ask(rig, "file-root:other.pem");
    for (const text of ["1", "2", "3"]) {
      await writeFile(join(rig.home, "other.pem"), text);
      await eventually("the other file is seen", () => inline(other.secrets.at(-1))[0] === text);
    }
    rig.setRoots("MORE ROOTS");
    await eventually("more roots come", () => inline(secrets.at(-1))[0] === "MORE ROOTS");
    expect(revoked()).toBe(list("two"));
    // An emptied one, as Istio's control plane writes where there is none, is no list.
    await write("");
    await eventually("there is none", () => revoked() === undefined);
    expect(inline(secrets.at(-1))).toEqual(["MORE ROOTS"]);
  });

  it("serves files, waits for those that are missing, and follows them", async () => {
    const rig = await startRig();
    const [cert, key] = [join(rig.home, "cert.pem"), join(rig.home, "key.pem")];
    await writeFile(cert, "CERT 1");
    const pair = ask(rig, `file-cert:${cert}~${key}`);
    const roots = ask(rig, "file-root:cert.pem");
    await eventually("roots come", () => roots.secrets.length === 1);
    expect(inline(roots.secrets[0])).toEqual(["CERT 1"]);
    await writeFile(`${key}~`, "KEY 1");
    await rename(`${key}~`, key);
    await eventually("the pair comes", () => pair.secrets.length === 1);
    expect(inline(pair.secrets[0])).toEqual(["CERT 1", "KEY 1"]);
    await writeFile(cert, "CERT 2");
    await eventually("the change comes", () => inline(pair.secrets.at(-1)).join() === "CERT 2,KEY 1");
  });

  it("serves its own where others are asked for on the same stream, and never takes a name of somebody else for a file", async () => {
    const rig = await startRig();
    await writeFile(join(rig.home, "ca"), "FILE");
    // What is left of the name without the beginning that names of files have.
    await mkdir(join(rig.home, ":/default"), { recursive: true });
    await writeFile(join(rig.home, ":/default/ca"), "NOT THIS");
    const { secrets } = ask(rig, "kubernetes://default/ca", "default", "file-root:ca");
    await eventually("both", async () => secrets.length >= 2);
    expect(secrets.map(({ name }) => name).sort()).toEqual(["default", "file-root:ca"]);
    expect(rig.passedOn).toEqual([]);
  });

  it("speaks the delta variant, and hands streams for other names on", async () => {
    const rig = await startRig();
    const names: string[] = [];
    const call = rig.channel.open(
      DELTA_SECRETS_METHOD,
      {},
      {
        message(bytes) {
          const { resources, typeUrl } = readDeltaResponse(bytes);
          names.push(
            typeUrl,
            ...resources.map(({ name }) => name),
            ...resources.map((one) => fromBinary(SecretSchema, bodyOfResource(one.bytes)).name),
          );
        },
        ended() {},
      },
    );
    call.send(deltaRequestBytes({ typeUrl: SECRET_TYPE, subscribe: ["default"] }));
    await eventually("it comes", () => names.length > 0);
    expect(names).toEqual([SECRET_TYPE, "default", "default"]);
    ask(rig, "kubernetes://credential");
    await eventually("it is handed on", () => rig.passedOn.length === 1);
    expect(rig.passedOn[0]).toContain("kubernetes://credential");
  });
});
