import { contentHash } from "../../base/hash.ts";
import { Interned } from "../../base/interned.ts";
import type { CredentialSource, Looked } from "../../credentials/credential-source.ts";
import { buildSecret, type SecretContent, SYSTEM } from "../../envoy/tls/index.ts";
import { SecretSchema } from "../../gen/envoy/extensions/transport_sockets/tls/v3/secret_pb.js";
import type { ProxyView } from "../../model/proxy.ts";
import { encoded } from "../../wire/encode.ts";
import type { Encoded, ResourceSet } from "../../wire/encoded.ts";
import { SECRET_TYPE } from "../../wire/type-urls.ts";
import type { ResourceProvider } from "../../xds/provider.ts";
import type { GenerateContext } from "../context.ts";
import { createCollector } from "../resource-set.ts";
import { defineSecretAccess, type MayReadSecrets, NAMESPACE_IS_THE_BORDER, UNDECIDED } from "./secret-access.ts";
import { type FileRequest, readSecretName, type SecretRequest, type StoredRequest } from "./secret-request.ts";

/** A secret that a proxy asked for and is not given. */
export interface WithheldSecret {
  readonly node: string;
  /** Of the proxy. */
  readonly namespace: string;
  readonly name: string;
  /** `refused`: it may not have it. `absent`: there is none. `broken`: it cannot be used; the last good one is served where there is one. */
  readonly why: "refused" | "absent" | "broken";
  readonly reason: string;
}

export interface SecretOptions {
  readonly credentials: CredentialSource;
  readonly mayRead?: MayReadSecrets;
  /** Told at each look, so of the same secret many times. */
  readonly withheld?: (secret: WithheldSecret) => void;
}

/**
 * Secrets that listeners and clusters ask for by name (SDS). Each name is judged anew at every push. What a proxy may not have, and what is not
 * there, is answered as removed: Envoy then opens the listener without it and refuses the connections that need it, and nothing else waits.
 * No query takes part: what a query reads is remembered, explained and shown, and secrets must not be.
 */
export function createSecretProvider(ctx: Pick<GenerateContext, "engine" | "inputs">, options: SecretOptions): ResourceProvider {
  const { credentials, mayRead = NAMESPACE_IS_THE_BORDER, withheld = () => {} } = options;
  const refusal = defineSecretAccess(ctx, mayRead);
  const encodeStored = createEncoder();
  const sets = new Interned<ResourceSet>();
  const secretFor = (view: ProxyView, name: string): Encoded | typeof UNDECIDED | Pick<WithheldSecret, "why" | "reason"> => {
    const request = readSecretName(name, view.namespace);
    if (request === undefined) return { why: "refused", reason: name.includes("://") ? "it is no name of a credential" : AGENTS };
    if (!isStored(request)) return encodeSecret(name, onMachineOf(view, request));
    const refused = refusal(view, name, request);
    if (refused === UNDECIDED) return UNDECIDED;
    if (refused !== undefined) return { why: "refused", reason: refused };
    const looked = lookUp(credentials, request, view);
    return looked.is === "found" ? encodeStored(name, looked.value) : { why: looked.is, reason: looked.reason };
  };
  return {
    typeUrl: SECRET_TYPE,
    asksAnew: true,
    urgent: true,
    // The first look at a credential checks its key, which takes time; later ones find it done.
    *prepare(view, wanted) {
      for (const name of wanted.names.names) {
        secretFor(view, name);
        yield;
      }
    },
    offered(view, wanted) {
      const collector = createCollector();
      for (const name of [...wanted.names.names].sort()) {
        const secret = secretFor(view, name);
        if (secret === UNDECIDED) {
          collector.fail(name, "it is not known yet whether the proxy may have it", "own");
          continue;
        }
        if (!("why" in secret)) collector.add(secret);
        else withheld({ node: view.id, namespace: view.namespace, name, ...secret });
        if ("why" in secret && secret.why === "broken") collector.fail(name, secret.reason);
      }
      return sets.of(setId(collector.set), () => collector.set);
    },
    provenance(view, name) {
      const request = readSecretName(name, view.namespace);
      return request !== undefined && isStored(request) ? lookUp(credentials, request, view).objects : [];
    },
  };
}

/** Names without a scheme: certificates of the mesh, whose keys never leave the workload, and files beside it. */
const AGENTS = "secrets of such names are served by the agent beside the proxy";

/** Proxies that are offered the same share one set, and find the same one at the next look. */
const setId = ({ resources, failed }: ResourceSet): string =>
  contentHash(JSON.stringify([[...resources.values()].map(({ name, version }) => [name, version]), failed]));

/** Where systems that are used for containers keep their roots, for proxies that do not say. */
const USUAL_SYSTEM_ROOTS = "/etc/ssl/certs/ca-certificates.crt";

const onMachineOf = ({ metadata }: ProxyView, request: FileRequest): FileRequest =>
  request.is === "rootsFile" && request.file === SYSTEM ? { ...request, file: metadata.systemRoots ?? USUAL_SYSTEM_ROOTS } : request;

const isStored = (request: SecretRequest): request is StoredRequest => "in" in request;

/** What the source has, and a value that stays the same object as long as the credential does. */
function lookUp(
  credentials: CredentialSource,
  request: StoredRequest,
  { clusterId: cluster }: Pick<ProxyView, "clusterId">,
): Looked<StoredContent> {
  const asked = { ...request, cluster };
  return asked.is === "roots" ? credentials.roots(asked) : credentials.keyPair(asked);
}

type FoundIn<L> = L extends { readonly is: "found"; readonly value: infer V } ? V : never;
type StoredContent = FoundIn<ReturnType<CredentialSource["roots"] | CredentialSource["keyPair"]>>;

/** Encodes each credential once for each of its names. */
function createEncoder(): (name: string, content: StoredContent) => Encoded {
  const known = new WeakMap<StoredContent, Map<string, Encoded>>();
  return (name, content) => {
    const names = known.get(content) ?? new Map<string, Encoded>();
    known.set(content, names);
    const made = names.get(name) ?? encodeSecret(name, contentOf(content));
    names.set(name, made);
    return made;
  };
}

const contentOf = (content: StoredContent): SecretContent =>
  "roots" in content ? { is: "roots", ...content } : { is: "certificate", ...content, key: content.key.reveal() };

const encodeSecret = (name: string, content: SecretContent): Encoded =>
  encoded({ typeUrl: SECRET_TYPE, name }, SecretSchema, buildSecret(name, content));
