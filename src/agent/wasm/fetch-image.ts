import { createHash } from "node:crypto";
import { type FetchLimits, type Got, httpGet, isInsecure } from "./http-get.ts";
import type { ImageReference } from "./image-reference.ts";
import { basic, type Login, readChallenge } from "./registry-credentials.ts";
import { unpackModule } from "./unpack.ts";

/** An image of which the manifest is known: what it is, and how to get the module in it. */
export interface FoundImage {
  /** Hex digests that name it: that of its manifest, and of the list it was found in. */
  readonly digests: readonly string[];
  module(): Promise<Buffer>;
}

const INDEXES = ["application/vnd.oci.image.index.v1+json", "application/vnd.docker.distribution.manifest.list.v2+json"];
const MANIFESTS = ["application/vnd.oci.image.manifest.v1+json", "application/vnd.docker.distribution.manifest.v2+json"];
/** Layers that are the module itself, as an artifact has it. */
const MODULES = ["application/vnd.module.wasm.content.layer.v1+wasm", "application/vnd.wasm.content.layer.v1+wasm", "application/wasm"];
/** Name of the module in an image that is a file system. */
const PLUGIN = "plugin.wasm";
const LARGEST_MANIFEST = 4 * 1024 * 1024;

/**
 * Finds an image in its registry (OCI distribution). Every piece is checked against the digest it was asked for by. Registries are called over TLS;
 * only one that was named as insecure may have any certificate, or none.
 */
export async function findImage(image: ImageReference, login: Login | undefined, limits: FetchLimits): Promise<FoundImage> {
  const registry = await openRegistry(image, login, limits);
  const top = await registry.manifest(image.reference, image.digest);
  const chosen = isIndex(top.json) ? platformOf(top.json) : undefined;
  const manifest = chosen === undefined ? top : await registry.manifest(chosen, hexOf(chosen));
  const layer = layerOf(manifest.json);
  return {
    digests: [...new Set([manifest.digest, top.digest])],
    module: async () => {
      const blob = await registry.blob(layer.digest);
      return unpackModule(blob, limits.mostBytes, MODULES.includes(layer.mediaType) ? undefined : PLUGIN);
    },
  };
}

interface Descriptor {
  readonly mediaType: string;
  readonly digest: string;
}

type Json = Readonly<Record<string, unknown>>;

const isIndex = ({ manifests }: Json): boolean => Array.isArray(manifests);

const listOf = (value: unknown): readonly Json[] => (Array.isArray(value) ? value.map((one) => Object(one) as Json) : []);

/** Modules run anywhere: the image of the usual platform, else the first. */
function platformOf({ manifests }: Json): string {
  const all = listOf(manifests);
  const usual = all.find(({ platform }) => {
    const { os, architecture } = Object(platform) as Json;
    return os === "linux" && architecture === "amd64";
  });
  const digest = (usual ?? all[0])?.digest;
  if (typeof digest !== "string") throw new Error("the image is an empty list");
  return digest;
}

function layerOf({ layers }: Json): Descriptor {
  const all = listOf(layers).map(({ mediaType, digest }) => ({ mediaType: String(mediaType), digest: String(digest) }));
  const layer = all.find(({ mediaType }) => MODULES.includes(mediaType)) ?? all.at(-1);
  if (layer === undefined) throw new Error("the image has no layers");
  return layer;
}

interface Registry {
  manifest(reference: string, digest: string | undefined): Promise<{ readonly json: Json; readonly digest: string }>;
  blob(digest: string): Promise<Buffer>;
}

async function openRegistry({ registry, repository }: ImageReference, login: Login | undefined, limits: FetchLimits): Promise<Registry> {
  const base = await baseOf(registry, limits);
  let authorization: string | undefined;
  const get = async (path: string, accept: string, most: number): Promise<Buffer> => {
    const url = new URL(`/v2/${repository}/${path}`, base);
    const ask = (): Promise<Got> =>
      httpGet(url, { accept, ...(authorization !== undefined && { authorization }) }, { ...limits, mostBytes: most });
    let got = await ask();
    if (got.status === 401) {
      authorization = await authorize({ registry: base, repository, header: got.headers["www-authenticate"], login, limits });
      got = await ask();
    }
    if (got.status !== 200) throw new Error(`${registry} answers with status ${got.status} for ${repository}/${path}`);
    return got.body;
  };
  return {
    async manifest(reference, wanted) {
      const body = await get(`manifests/${reference}`, [...MANIFESTS, ...INDEXES].join(", "), LARGEST_MANIFEST);
      const digest = sha256Of(body);
      if (wanted !== undefined && digest !== wanted) throw new Error("the image is not the one its digest names");
      return { json: Object(JSON.parse(body.toString("utf8"))) as Json, digest };
    },
    async blob(digest) {
      const body = await get(`blobs/${digest}`, "*/*", limits.mostBytes);
      if (sha256Of(body) !== hexOf(digest)) throw new Error("a layer of the image is not the one its digest names");
      return body;
    },
  };
}

/** An insecure registry may speak plain HTTP, which shows when TLS is tried. */
async function baseOf(registry: string, limits: FetchLimits): Promise<URL> {
  const secure = new URL(`https://${registry}`);
  if (!isInsecure(secure, limits)) return secure;
  const speaksTls = await httpGet(new URL("/v2/", secure), {}, limits).then(
    () => true,
    (error: unknown) => !(error instanceof Error && "code" in error && /^(EPROTO|ECONNRESET|ERR_SSL.*)$/.test(String(error.code))),
  );
  return speaksTls ? secure : new URL(`http://${registry}`);
}

interface Authorization {
  readonly registry: URL;
  readonly repository: string;
  readonly header: string | undefined;
  readonly login: Login | undefined;
  readonly limits: FetchLimits;
}

async function authorize({ registry, repository, header, login, limits }: Authorization): Promise<string> {
  const challenge = readChallenge(header, registry);
  if (challenge.kind === "basic") {
    if (login === undefined) throw new Error(`${registry.host} wants a login, and there is none for it`);
    return basic(login);
  }
  const { realm, service, scope } = challenge;
  if (service !== "") realm.searchParams.set("service", service);
  realm.searchParams.set("scope", scope || `repository:${repository}:pull`);
  const got = await httpGet(realm, login === undefined ? {} : { authorization: basic(login) }, { ...limits, mostBytes: LARGEST_MANIFEST });
  if (got.status !== 200) throw new Error(`${realm.host} gives no token for ${registry.host}: status ${got.status}`);
  const { token, access_token: other } = Object(JSON.parse(got.body.toString("utf8"))) as Json;
  const found = typeof token === "string" ? token : other;
  if (typeof found !== "string") throw new Error(`${realm.host} answers without a token`);
  return `Bearer ${found}`;
}

const hexOf = (digest: string): string => /^sha256:([0-9a-f]{64})$/.exec(digest)?.[1] ?? "no such digest";

/** Hex digest of some bytes. */
export const sha256Of = (bytes: Uint8Array): string => createHash("sha256").update(bytes).digest("hex");
