/** An image as `oci://` names it. */
export interface ImageReference {
  /** `host` or `host:port`. */
  readonly registry: string;
  readonly repository: string;
  /** Tag or `sha256:…`. */
  readonly reference: string;
  /** Hex, where the name says what it must be. */
  readonly digest: string | undefined;
}

const DOCKER = "registry-1.docker.io";
const COMPONENT = /^[a-z0-9]+(?:(?:\.|_{1,2}|-+)[a-z0-9]+)*$/;

/** Reads what stands after `oci://`, by the rules of Docker's names. Throws a sentence where it is none. */
export function readImageReference(text: string): ImageReference {
  const [named = "", digestText] = text.split("@");
  const [first = "", ...rest] = named.split("/");
  const hasRegistry = rest.length > 0 && (/[.:]/.test(first) || first === "localhost");
  const registry = !hasRegistry || /^(index\.)?docker\.io$/.test(first) ? DOCKER : first;
  const path = hasRegistry ? rest.join("/") : named;
  const [, repositoryText = "", tag] = /^([^:]+)(?::([\w][\w.-]{0,127}))?$/.exec(path) ?? [];
  const repository = registry === DOCKER && !repositoryText.includes("/") ? `library/${repositoryText}` : repositoryText;
  const digest = digestText === undefined ? undefined : /^sha256:([0-9a-f]{64})$/.exec(digestText)?.[1];
  if (!repository.split("/").every((part) => COMPONENT.test(part)) || (digestText !== undefined && digest === undefined))
    throw new Error(`${JSON.stringify(text)} is no name of an image`);
  return { registry, repository, reference: digestText ?? tag ?? "latest", digest };
}
